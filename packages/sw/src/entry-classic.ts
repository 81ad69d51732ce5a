/** `agarose-sw.classic.js`: a worker by itself, or the global function `agarose` for one that calls `importScripts`. */
import type { ClientConfigInput } from "./config.ts";
import { inlinedDecoder } from "./inlined-decoder.ts";
import { wireConfig, wireFromUrl, type InstallOptions } from "./install.ts";
import type { WorkerScope } from "./worker-scope.ts";

const scope = globalThis as unknown as WorkerScope & {
  agarose: (config: ClientConfigInput, options?: Omit<InstallOptions, "store">) => void;
};

scope.agarose = (config, options) => wireConfig(config, { codec: inlinedDecoder, ...options });

// A classic script cannot tell whether it was imported but by the worker's name; another worker's query is not for us.
if (/agarose-sw[^/]*\.js$/.test(new URL(scope.location.href).pathname)) {
  wireFromUrl(scope, { codec: inlinedDecoder });
}
