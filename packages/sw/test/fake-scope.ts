/** A service worker's global scope, whose browser is the test. */
import type { LifeCycleEvent, WorkerScope } from "../src/worker/worker-scope.ts";

type Listener = (event: never) => void;

export class FakeScope implements WorkerScope {
  readonly location = new URL("https://app.test/agarose-sw.js");
  readonly registration: { active: unknown } = { active: null };
  readonly calls: string[] = [];
  readonly clients = { claim: async (): Promise<void> => void this.calls.push("claim") };
  readonly #listeners = new Map<string, Listener>();

  async skipWaiting(): Promise<void> {
    this.calls.push("skipWaiting");
  }

  addEventListener(type: string, listener: Listener): void {
    this.#listeners.set(type, listener);
  }

  /** Fires an event; resolves when all it waits for is done. */
  async fire(type: string, fields: object = {}): Promise<void> {
    const work: Promise<unknown>[] = [];
    const waitUntil: LifeCycleEvent["waitUntil"] = (promise) => void work.push(promise);
    const event = { waitUntil, ports: [], ...fields };
    this.#listeners.get(type)?.(event as never);
    await Promise.all(work);
  }

  /** The response to a request, or undefined when the worker lets it pass. */
  async request(url: string, init: RequestInit = {}): Promise<Response | undefined> {
    let response: Promise<Response> | undefined;
    const request = new Request(new URL(url, this.location.origin), init);
    void this.fire("fetch", { request, respondWith: (promise: Promise<Response>) => void (response = promise) });
    return response;
  }
}
