/** `agarose-sw.js`: a worker by itself when it is registered, a library when another worker imports it. */
import { inlinedCodec } from "./inlined-codec.ts";
import { agarose as agaroseWith, agaroseFromUrl, type ClientConfigInput, type InstallOptions } from "./sw.ts";
import type { WorkerScope } from "./worker-scope.ts";

/** Serves the objects of `config` from the worker that imports this file. */
export function agarose(config: ClientConfigInput, options?: InstallOptions): void {
  agaroseWith(config, { codec: inlinedCodec, ...options });
}

const scope = globalThis as unknown as WorkerScope;
if (import.meta.url === scope.location.href) agaroseFromUrl(scope, { codec: inlinedCodec });
