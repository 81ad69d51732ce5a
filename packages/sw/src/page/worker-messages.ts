/** What a page may ask of the worker that controls it. */
import type { ObjectClient } from "../client/object-client.ts";
import type { WorkerMessage } from "../worker/life-cycle.ts";

/**
 * Fetches the plans of the objects that a page will need, before it needs them: their reads then ask the edge and the buckets
 * in the same moment. Without a worker in charge it needs the `client` that will read.
 */
export function preload(keys: readonly string[], client?: ObjectClient): void {
  if (client) void client.preload(keys);
  else tell({ agarose: "preload", keys });
}

/** Tells the worker that objects have changed: their plans are fetched anew, and what is kept of old versions goes. */
export function update(keys: readonly string[]): void {
  tell({ agarose: "update", keys });
}

/** Drops the plans, and what is kept for offline reads, of keys or of all that begin with a prefix. */
export function purge(which: { readonly keys?: readonly string[]; readonly prefix?: string }): void {
  tell({ agarose: "purge", ...which });
}

function tell(message: WorkerMessage): void {
  globalThis.navigator?.serviceWorker?.controller?.postMessage(message);
}
