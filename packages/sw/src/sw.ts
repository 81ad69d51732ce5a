/**
 * The service worker as a library: `agarose({ pops, regions })` in a worker of one's own. The drop-in file
 * `agarose-sw.js` does the same, by itself for the configuration that its URL names.
 */
import { javascriptCodec } from "@agarose/ec-wasm";
import type { ClientConfigInput, ConfigSource } from "./common/config.ts";
import { wire, wireConfig, type InstallOptions, type WiredOptions } from "./worker/install.ts";
import { offlineStore } from "./offline/offline-store.ts";
import type { WorkerScope } from "./worker/worker-scope.ts";

export type { ClientConfig, ClientConfigInput, ConfigSource, Endpoint } from "./common/config.ts";
export type { InstallOptions } from "./worker/install.ts";
export type { WorkerMessage } from "./common/messages.ts";
export { configFromUrl, parseConfig } from "./common/config.ts";
export { AgaroseStrategy, type HandleOptions, type StrategyOptions } from "./worker/strategy.ts";
export type { HookParam, StrategyPlugin } from "./worker/strategy-plugins.ts";

/** Serves the objects of a configuration from the worker it is called in, which must still be starting up. */
export function agarose(config: ClientConfigInput, options: InstallOptions = {}): void {
  wireConfig(globalThis as unknown as WorkerScope, config, withDefaults(options));
}

/** Wires a worker: its routes, its client and its life cycle. */
export function installAgarose(scope: WorkerScope, source: ConfigSource, options: InstallOptions = {}): void {
  wire(scope, source, withDefaults(options));
}

function withDefaults(options: InstallOptions): WiredOptions {
  return { codec: async () => javascriptCodec(), store: offlineStore, ...options };
}
