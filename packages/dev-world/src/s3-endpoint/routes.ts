/** Finds the operation of a request by its method, its key and the sub-resource in its query. */
import * as buckets from "./bucket-operations.ts";
import type { Exchange } from "./exchange.ts";
import * as objects from "./object-operations.ts";
import { S3Error } from "./wire/s3-error.ts";

type Operation = (exchange: Exchange) => Promise<void>;

interface Route {
  readonly method: string;
  readonly on: "service" | "bucket" | "object";
  /** Required query parameters. A route without any matches only requests without a sub-resource. */
  readonly query?: readonly string[];
  readonly operation: Operation;
}

const ROUTES: readonly Route[] = [
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

/** Sub-resources of S3 that select another operation than the plain request. */
const SUBRESOURCES = [
  "accelerate", "acl", "analytics", "attributes", "cors", "delete", "encryption", "inventory", "legal-hold", "lifecycle",
  "list-type", "location", "logging", "metrics", "notification", "object-lock", "ownershipControls", "partNumber", "policy",
  "policyStatus", "publicAccessBlock", "replication", "requestPayment", "restore", "retention", "select", "tagging",
  "torrent", "uploadId", "uploads", "versioning", "versions", "website",
]; // prettier-ignore

/** Returns the operation of a request. Throws S3Error NotImplemented or MethodNotAllowed. */
export function routeOf(method: string, bucket: string, key: string, query: URLSearchParams): Operation {
  const on = bucket === "" ? "service" : key === "" ? "bucket" : "object";
  const asked = SUBRESOURCES.filter((name) => query.has(name));
  const fits = ROUTES.filter((route) => route.on === on && (route.query ?? []).every((name) => query.has(name)));
  const route = fits.find(
    (candidate) => candidate.method === method && (candidate.query ?? []).length === asked.length,
  );
  if (route) return route.operation;
  if (asked.length > 0 || (method === "GET" && on === "bucket")) {
    throw new S3Error("NotImplemented", `${method} ?${asked.join("&")} on a ${on} is not supported.`);
  }
  throw new S3Error("MethodNotAllowed", `${method} is not allowed against a ${on}.`);
}
