/** The parts of the command line that other programs use: the configuration, scenario files, put and get. */
export { loadConfig, parseConfig, type Config, type Region } from "./lib/config.ts";
export { putObject, type PutContext, type PutObject, type PutResult } from "./lib/objects/put-object.ts";
export { getObject, type GetContext } from "./lib/objects/get-object.ts";
export { readManifest } from "./lib/objects/manifests.ts";
export { loadScenario } from "./lib/scenario-file.ts";
export { openStores } from "./lib/store/stores.ts";
export type { Store } from "./lib/store/store.ts";
