/** The operations that the endpoint has. */
import * as buckets from "./bucket-operations.ts";
import type { Exchange } from "./exchange.ts";
import * as objects from "./object-operations.ts";
import { findOperation, type Route } from "./wire/routes.ts";

type Operation = (exchange: Exchange) => Promise<void>;

const ROUTES: readonly Route<Operation>[] = [
  { method: "GET", on: "service", operation: buckets.listBuckets },
  { method: "PUT", on: "bucket", operation: buckets.createBucket },
  { method: "HEAD", on: "bucket", operation: buckets.headBucket },
  { method: "DELETE", on: "bucket", operation: buckets.deleteBucket },
  { method: "GET", on: "bucket", query: ["list-type"], operation: buckets.listObjectsV2 },
  { method: "GET", on: "bucket", query: ["location"], operation: buckets.bucketLocation },
  { method: "GET", on: "bucket", query: ["uploads"], operation: buckets.listUploads },
  { method: "POST", on: "bucket", query: ["delete"], operation: buckets.deleteObjects },
  { method: "POST", on: "object", query: ["uploads"], operation: objects.createUpload },
  { method: "PUT", on: "object", query: ["partNumber", "uploadId"], operation: objects.uploadPart },
  { method: "POST", on: "object", query: ["uploadId"], operation: objects.completeUpload },
  { method: "DELETE", on: "object", query: ["uploadId"], operation: objects.abortUpload },
  { method: "GET", on: "object", query: ["uploadId"], operation: objects.listParts },
  { method: "GET", on: "object", operation: objects.getObject },
  { method: "HEAD", on: "object", operation: objects.getObject },
  { method: "PUT", on: "object", operation: objects.putObject },
  { method: "DELETE", on: "object", operation: objects.deleteObject },
];

/** Returns the operation of a request. Throws S3Error NotImplemented or MethodNotAllowed. */
export function routeOf(method: string, bucket: string, key: string, query: URLSearchParams): Operation {
  return findOperation(ROUTES, { method, bucket, key, query });
}
