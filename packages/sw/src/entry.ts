/**
 * `agarose-sw.js`: a worker by itself when it is registered, a library when another worker imports it. `asClassic` makes
 * `agarose-sw.classic.js` of it.
 */
import type { ClientConfigInput } from "./config.ts";
import { inlinedDecoder } from "./inlined-decoder.ts";
import { wireConfig, wireFromUrl, type InstallOptions } from "./install.ts";
import type { WorkerScope } from "./worker-scope.ts";

/** Serves the objects of `config` from the worker that imports this file. */
export function agarose(config: ClientConfigInput, options?: Omit<InstallOptions, "store">): void {
  wireConfig(config, { codec: inlinedDecoder, ...options });
}

const scope = globalThis as unknown as WorkerScope;
if (import.meta.url === scope.location.href) wireFromUrl(scope, { codec: inlinedDecoder });
