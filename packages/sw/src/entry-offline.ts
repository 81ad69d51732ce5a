/** `agarose-sw.offline.js`: `agarose-sw.js` that keeps what was read, where the configuration says how much. */
import type { ClientConfigInput } from "./config.ts";
import { inlinedDecoder } from "./inlined-decoder.ts";
import { wireConfig, wireFromUrl, type InstallOptions } from "./install.ts";
import { offlineStore } from "./offline-store.ts";
import type { WorkerScope } from "./worker-scope.ts";

const OPTIONS = { codec: inlinedDecoder, store: offlineStore };

/** Serves the objects of `config` from the worker that imports this file. */
export function agarose(config: ClientConfigInput, options?: InstallOptions): void {
  wireConfig(config, { ...OPTIONS, ...options });
}

const scope = globalThis as unknown as WorkerScope;
if (import.meta.url === scope.location.href) wireFromUrl(scope, OPTIONS);
