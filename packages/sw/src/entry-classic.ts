/** `agarose-sw.classic.js`: a worker by itself, or the global function `agarose` for one that calls `importScripts`. */
import { inlinedCodec } from "./inlined-codec.ts";
import { agarose, agaroseFromUrl, type ClientConfigInput, type InstallOptions } from "./sw.ts";
import type { WorkerScope } from "./worker-scope.ts";

const scope = globalThis as unknown as WorkerScope & { agarose: typeof agarose };

scope.agarose = (config: ClientConfigInput, options?: InstallOptions): void =>
  agarose(config, { codec: inlinedCodec, ...options });

// A classic script cannot tell whether it was imported but by the worker's name; another worker's query is not for us.
if (/agarose-sw[^/]*\.js$/.test(new URL(scope.location.href).pathname)) {
  agaroseFromUrl(scope, { codec: inlinedCodec });
}
