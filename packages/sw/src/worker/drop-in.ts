/**
 * Wires a drop-in file. A classic worker loads it with `importScripts`, a module worker imports it, and a page
 * registers it.
 */
import type { ClientConfigInput } from "../common/config.ts";
import { isWorkerFile } from "../common/worker-files.ts";
import { importedCodec } from "./imported-codec.ts";
import { wireConfig, wireFromUrl, type InstallOptions, type WorkerOptions } from "./install.ts";
import type { WorkerScope } from "./worker-scope.ts";

/** The globals that a drop-in file adds to the worker that imports it. */
interface DropInScope extends WorkerScope {
  /** Serves the objects of `config` from this worker. */
  agarose(config: ClientConfigInput, options?: WorkerOptions): void;
}

/**
 * Sets the global function `agarose`. If the file is the registered worker, also serves what the worker's URL asks for.
 */
export function dropIn(own: Pick<InstallOptions, "store">): void {
  const scope = globalThis as unknown as DropInScope;
  const options = { ...own, codec: importedCodec };
  scope.agarose = (config, chosen) => wireConfig(scope, config, { ...chosen, ...options });
  // A script knows by its name that it is the registered worker. The query of another worker, which imports this file,
  // has another meaning.
  if (isWorkerFile(scope.location.pathname)) wireFromUrl(scope, options);
}
