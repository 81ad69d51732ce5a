/**
 * The parts of the command line that other programs use: the configuration, scenario files, put and get, and the
 * references that are generated from its sources.
 */
export { cliReference } from "./lib/cli-reference.ts";
export { configFields, configReference, type ConfigField } from "./lib/config-reference.ts";
export { loadConfig, parseConfig, type Config, type CredentialSource, type RegionConfig } from "./lib/config.ts";
export { getObject, type GetContext } from "./lib/objects/get-object.ts";
export { readManifest } from "./lib/objects/manifests.ts";
export { putObject, type PutContext, type PutObject, type PutResult } from "./lib/objects/put-object.ts";
export { fileSource, type Source, type SourceReader } from "./lib/objects/upload/file-source.ts";
export { loadScenario } from "./lib/scenario-file.ts";
export type { Store } from "./lib/store/store.ts";
export { openStores } from "./lib/store/stores.ts";
export { buildProgram } from "./main.ts";
