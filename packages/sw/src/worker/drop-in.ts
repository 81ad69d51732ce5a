/**
 * The drop-in files: one script each, which imports nothing where there is WebAssembly. A classic worker calls `importScripts` for them, a module worker imports
 * them, and a page registers them.
 */
import type { ClientConfigInput } from "../shared/config.ts";
import { inlinedDecoder } from "./inlined-decoder.ts";
import { wireConfig, wireFromUrl, type InstallOptions, type WorkerOptions } from "./install.ts";
import type { WorkerScope } from "./worker-scope.ts";

/** What a drop-in file adds to the worker that imports it. */
interface DropInScope extends WorkerScope {
  /** Serves the objects of `config` from this worker. */
  agarose(config: ClientConfigInput, options?: WorkerOptions): void;
}

/** Sets the global function `agarose`, and serves what the worker's URL asks for where that worker is the file itself. */
export function dropIn(own: Pick<InstallOptions, "store">): void {
  const scope = globalThis as unknown as DropInScope;
  const options = { ...own, codec: inlinedDecoder };
  scope.agarose = (config, chosen) => wireConfig(scope, config, { ...chosen, ...options });
  // A script cannot tell whether it was imported but by the worker's name: another worker's query is not for us.
  if (/\/agarose-sw[^/]*\.js$/.test(scope.location.pathname)) wireFromUrl(scope, options);
}
