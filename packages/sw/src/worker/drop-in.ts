/**
 * Wires a drop-in file. A classic worker loads it with `importScripts`, a module worker imports it, and a page
 * registers it. Where there is WebAssembly it imports nothing.
 */
import type { ClientConfigInput } from "../common/config.ts";
import { isDropIn } from "./drop-in-name.ts";
import { inlinedDecoder } from "./inlined-decoder.ts";
import { wireConfig, wireFromUrl, type InstallOptions, type WorkerOptions } from "./install.ts";
import type { WorkerScope } from "./worker-scope.ts";

/** What a drop-in file adds to the worker that imports it. */
interface DropInScope extends WorkerScope {
  /** Serves the objects of `config` from this worker. */
  agarose(config: ClientConfigInput, options?: WorkerOptions): void;
}

/**
 * Sets the global function `agarose`. If the file is the registered worker, also serves what the worker's URL asks for.
 */
export function dropIn(own: Pick<InstallOptions, "store">): void {
  const scope = globalThis as unknown as DropInScope;
  const options = { ...own, codec: inlinedDecoder };
  scope.agarose = (config, chosen) => wireConfig(scope, config, { ...chosen, ...options });
  // The query of another worker, which imports this file, has another meaning.
  if (isDropIn(scope.location.pathname)) wireFromUrl(scope, options);
}
