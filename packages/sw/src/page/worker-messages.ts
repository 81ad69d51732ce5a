/** Messages to the worker that controls the page. */
import type { ObjectClient } from "../client/object-client.ts";
import type { WorkerMessage } from "../common/messages.ts";

/**
 * Fetches the plans of objects that the page will need, a hundred in one request. Their reads then ask the edge and the
 * buckets at once. Without a worker in control, pass the `client` that will read.
 */
export function preload(keys: readonly string[], client?: ObjectClient): void {
  if (client) void client.preload(keys);
  else send({ agarose: "preload", keys });
}

/** Reports that objects have changed. The worker fetches their plans again and drops old versions. */
export function update(keys: readonly string[]): void {
  send({ agarose: "update", keys });
}

/** Drops the plans and stored stripes of keys, or of every key that begins with a prefix. */
export function purge(which: { readonly keys?: readonly string[]; readonly prefix?: string }): void {
  send({ agarose: "purge", ...which });
}

function send(message: WorkerMessage): void {
  globalThis.navigator?.serviceWorker?.controller?.postMessage(message);
}
