/** The parts of the command line that other programs use: an S3 endpoint for tests, the configuration, put and get. */
export { loadConfig, parseConfig, type Config, type Region } from "./config.ts";
export { startS3Endpoint, type S3Endpoint, type S3EndpointOptions } from "./s3-endpoint/index.ts";
export { findVersitygw, startVersitygw, type VersitygwOptions } from "./s3-endpoint/versitygw.ts";
export { putObject, type PutContext, type PutObject, type PutResult } from "./put/put-object.ts";
export { getObject, type GetContext } from "./get/get-object.ts";
export { readManifest } from "./manifests.ts";
export { openStores } from "./store/stores.ts";
export type { Store } from "./store/store.ts";
