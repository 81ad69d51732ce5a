/** Messages to the worker that controls the page. */
import type { ObjectClient } from "../client/object-client.ts";
import type { WorkerMessage } from "../common/messages.ts";

/**
 * Fetches the plans of objects before the page needs them. Their reads then ask the edge and the buckets at once.
 * Without a controlling worker, pass the `client` that will read.
 */
export function preload(keys: readonly string[], client?: ObjectClient): void {
  if (client) void client.preload(keys);
  else send({ agarose: "preload", keys });
}

/** Reports that objects have changed: the worker fetches their plans again and drops old versions. */
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
