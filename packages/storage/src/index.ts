/**
 * `@agarose/storage`: a deployment, and what is done with its objects. Each module can be imported by its path as well,
 * so that a program which only reads loads nothing else.
 */
export { loadConfig, parseConfig, type Config, type RegionConfig } from "./config/config.ts";
export { closeDeployment, openDeployment, type Deployment } from "./deployment.ts";
export type { Store } from "./buckets/store.ts";
export { getObject, type GetContext } from "./objects/get-object.ts";
export { readManifest } from "./objects/manifests.ts";
export { putObject, type PutContext, type PutObject, type PutResult } from "./objects/put-object.ts";
export { removeObject, type RemoveResult } from "./objects/remove-object.ts";
export { verifyObject, type ObjectVerdict } from "./objects/verify-object.ts";
export { repairObject, type RepairReport } from "./repair/repair-object.ts";
export { fileSource, type Source, type SourceReader } from "./upload/file-source.ts";
