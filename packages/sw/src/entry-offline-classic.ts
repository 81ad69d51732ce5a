/** `agarose-sw.offline.classic.js`: `agarose-sw.classic.js` that keeps what was read, where the configuration says how much. */
import type { ClientConfigInput } from "./config.ts";
import { inlinedDecoder } from "./inlined-decoder.ts";
import { wireConfig, wireFromUrl, type InstallOptions } from "./install.ts";
import { offlineStore } from "./offline-store.ts";
import type { WorkerScope } from "./worker-scope.ts";

const OPTIONS = { codec: inlinedDecoder, store: offlineStore };
const scope = globalThis as unknown as WorkerScope & {
  agarose: (config: ClientConfigInput, options?: InstallOptions) => void;
};

scope.agarose = (config, options) => wireConfig(config, { ...OPTIONS, ...options });

// As in `entry-classic.ts`: another worker's query is not for us.
if (/agarose-sw[^/]*\.js$/.test(new URL(scope.location.href).pathname)) wireFromUrl(scope, OPTIONS);
