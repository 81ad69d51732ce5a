/** The operations of S3 that the gateway has. All others are NotImplemented. */
import type { Route } from "@agarose/dev-world/s3-wire";
import * as buckets from "./bucket-operations.ts";
import type { Exchange } from "./exchange.ts";
import * as uploads from "./multipart/operations.ts";
import * as reads from "./read-operations.ts";
import * as writes from "./write-operations.ts";

/** What serves a request. */
export type Operation = (exchange: Exchange) => Promise<void>;

/** All operations. */
export const ROUTES: readonly Route<Operation>[] = [
  { method: "GET", on: "service", operation: buckets.listBuckets },
  { method: "PUT", on: "bucket", operation: buckets.createBucket },
  { method: "HEAD", on: "bucket", operation: buckets.headBucket },
  { method: "GET", on: "bucket", query: ["list-type"], operation: buckets.listObjectsV2 },
  { method: "GET", on: "bucket", query: ["location"], operation: buckets.bucketLocation },
  { method: "POST", on: "bucket", query: ["delete"], operation: writes.removeMany },
  { method: "POST", on: "object", query: ["uploads"], operation: uploads.createUpload },
  { method: "PUT", on: "object", query: ["partNumber", "uploadId"], operation: uploads.uploadPart },
  { method: "POST", on: "object", query: ["uploadId"], operation: uploads.completeUpload },
  { method: "DELETE", on: "object", query: ["uploadId"], operation: uploads.abortUpload },
  { method: "PUT", on: "object", operation: writes.writeObject },
  { method: "DELETE", on: "object", operation: writes.removeOne },
  { method: "GET", on: "object", operation: reads.readObject },
  { method: "HEAD", on: "object", operation: reads.readObject },
];
