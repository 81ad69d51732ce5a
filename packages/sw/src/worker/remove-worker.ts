/** The end of a drop-in worker: the server sends this in its place, and browsers pick it up as an update. */
import { CACHE_NAMES } from "../common/cache-names.ts";
import { isWorkerFile } from "../common/worker-files.ts";
import type { LifeCycleEvent } from "./worker-scope.ts";

/** The part of ServiceWorkerGlobalScope that a removal uses. */
export interface RemovedScope {
  agarose?: () => void;
  readonly location: { readonly pathname: string };
  readonly registration: { unregister(): Promise<boolean> };
  readonly caches: Pick<CacheStorage, "delete">;
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", listener: (event: LifeCycleEvent) => void): void;
}

/**
 * Takes over from the older worker at once, deletes the caches and unregisters. It has no fetch listener, so open pages
 * read from the network from then on. In a worker that only imports the file, it does nothing.
 */
export function removeWorker(scope: RemovedScope): void {
  scope.agarose = () => {};
  if (!isWorkerFile(scope.location.pathname)) return;
  scope.addEventListener("install", (event) => event.waitUntil(scope.skipWaiting()));
  scope.addEventListener("activate", (event) => event.waitUntil(remove(scope)));
}

async function remove({ caches, registration }: RemovedScope): Promise<void> {
  // A cache that cannot be deleted must not keep the worker.
  await Promise.allSettled(CACHE_NAMES.map((name) => caches.delete(name)));
  await registration.unregister();
}
