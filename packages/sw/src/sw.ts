/**
 * The service worker as a library: `agarose({ pops, regions })` in a worker of one's own, or `createHandle` for one
 * that has a router. The drop-in file `agarose-sw.js` does the same, by itself for the configuration that its URL
 * names.
 */
import { javascriptCodec } from "@agarose/ec-wasm";
import type { ClientConfigInput } from "./common/config.ts";
import type { Handle } from "./client/handle.ts";
import { handleConfig, wireConfig, type InstallOptions, type WiredOptions } from "./worker/install.ts";
import { offlineStore } from "./offline/offline-store.ts";
import type { WorkerScope } from "./worker/worker-scope.ts";

export type { ClientConfigInput, Endpoint } from "./common/config.ts";
export type { Handle } from "./client/handle.ts";
export type { InstallOptions } from "./worker/install.ts";
export type { WorkerMessage } from "./common/messages.ts";

/** Serves the objects of a configuration from the worker it is called in, which must still be starting up. */
export function agarose(config: ClientConfigInput, options: InstallOptions = {}): void {
  wireConfig(globalThis as unknown as WorkerScope, config, withDefaults(options));
}

/**
 * Returns what responds to requests for the objects of a configuration, for a worker that listens to requests itself,
 * as by a router of Workbox or Serwist. Call it once, while the worker starts: from then on the worker also handles the
 * messages of `register`, `preload`, `update` and `purge`.
 *
 * @throws CONFIG_INVALID, naming the field.
 */
export function createHandle(
  config: ClientConfigInput,
  options: Pick<InstallOptions, "codec" | "navigations"> = {},
): Handle {
  return handleConfig(globalThis as unknown as WorkerScope, config, withDefaults(options));
}

function withDefaults(options: InstallOptions): WiredOptions {
  return { codec: async () => javascriptCodec(), store: offlineStore, ...options };
}
