/** Service worker of the bench page: times calls with its own clock, which Chromium never stops. */
import relaxed from "../pkg/relaxed.wasm";
import simd from "../pkg/simd.wasm";
import { serve, type RemoteRequest } from "./remote-calls.ts";

const modules = { relaxed: new WebAssembly.Module(relaxed), simd: new WebAssembly.Module(simd) };

/** The used part of a service worker's global scope: the DOM types describe pages. */
interface WorkerScope {
  skipWaiting(): Promise<void>;
  readonly clients: { claim(): Promise<void> };
  addEventListener(type: string, listener: (event: ExtendableMessageEvent) => void): void;
}

interface ExtendableMessageEvent {
  readonly data: RemoteRequest;
  readonly ports: readonly MessagePort[];
  waitUntil(promise: Promise<unknown>): void;
}

const scope = globalThis as unknown as WorkerScope;
scope.addEventListener("install", () => void scope.skipWaiting());
scope.addEventListener("activate", (event) => event.waitUntil(scope.clients.claim()));
scope.addEventListener("message", ({ data, ports }) => {
  // Preparing is not timed: with no iterations it is done before the clock starts.
  serve({ work: data.work }, modules);
  const start = performance.now();
  const implementations = serve(data, modules);
  ports[0]!.postMessage({ implementations, milliseconds: performance.now() - start });
});
