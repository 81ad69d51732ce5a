/**
 * Life cycle of the worker: the first install takes control of open pages at once, an update waits for them to close,
 * unless a page asks for it.
 */
import type { WorkerScope } from "./worker-scope.ts";

/** What a page may tell its worker: `registration.waiting.postMessage({ agarose: "skip-waiting" })`. */
export type WorkerMessage =
  /** Take over from the older worker now. */
  | { readonly agarose: "skip-waiting" }
  /** Take control of the page that asks, and all others in scope: after a hard reload a page is without its worker. */
  | { readonly agarose: "claim" }
  /** The network has changed: measure the PoPs' round trips now. */
  | { readonly agarose: "probe" }
  /** Forget all plans, so that the next reads ask for them. */
  | { readonly agarose: "forget-plans" };

export interface LifeCycleOptions {
  /** Rejects when the worker cannot work; it is then not installed. */
  readonly ready: () => Promise<unknown>;
  /** Whether the first install takes control of pages that are open already. */
  readonly claim: boolean;
  readonly onMessage: (message: WorkerMessage) => Promise<unknown>;
}

export function installLifeCycle(scope: WorkerScope, { ready, claim, onMessage }: LifeCycleOptions): void {
  let isFirst = false;
  scope.addEventListener("install", (event) => {
    isFirst = !scope.registration.active;
    event.waitUntil(ready());
  });
  scope.addEventListener("activate", (event) => {
    if (isFirst && claim) event.waitUntil(scope.clients.claim());
  });
  scope.addEventListener("message", (event) => {
    const message = event.data as WorkerMessage | null | undefined;
    if (typeof message?.agarose !== "string") return;
    event.waitUntil(obey(message));
  });

  function obey(message: WorkerMessage): Promise<unknown> {
    if (message.agarose === "skip-waiting") return scope.skipWaiting();
    if (message.agarose === "claim") return scope.clients.claim();
    return onMessage(message);
  }
}
