/**
 * S3 servers for tests: the embedded endpoint, and versitygw.
 *
 * @module
 */
export { startS3Endpoint, type S3Endpoint, type S3EndpointOptions } from "./s3-endpoint.ts";
export { findVersitygw, startVersitygw, type VersitygwOptions } from "./versitygw.ts";
