/** Finds the operation of a request by its method, its key and the sub-resource in its query. */
import { S3Error } from "./s3-error.ts";

/** A request that a server takes, and what it does with it. */
export interface Route<T> {
  readonly method: string;
  readonly on: "service" | "bucket" | "object";
  /** Required query parameters. A route without any matches only requests without a sub-resource. */
  readonly query?: readonly string[];
  readonly operation: T;
}

/** Sub-resources of S3 that select another operation than the plain request. */
const SUBRESOURCES = [
  "accelerate", "acl", "analytics", "attributes", "cors", "delete", "encryption", "inventory", "legal-hold", "lifecycle",
  "list-type", "location", "logging", "metrics", "notification", "object-lock", "ownershipControls", "partNumber", "policy",
  "policyStatus", "publicAccessBlock", "replication", "requestPayment", "restore", "retention", "select", "tagging",
  "torrent", "uploadId", "uploads", "versioning", "versions", "website",
]; // prettier-ignore

/** Returns the operation of a request. Throws S3Error NotImplemented or MethodNotAllowed. */
export function findOperation<T>(
  routes: readonly Route<T>[],
  { method, bucket, key, query }: { method: string; bucket: string; key: string; query: URLSearchParams },
): T {
  const on = bucket === "" ? "service" : key === "" ? "bucket" : "object";
  const asked = SUBRESOURCES.filter((name) => query.has(name));
  const fits = routes.filter((route) => route.on === on && (route.query ?? []).every((name) => query.has(name)));
  const route = fits.find(
    (candidate) => candidate.method === method && (candidate.query ?? []).length === asked.length,
  );
  if (route) return route.operation;
  if (asked.length > 0 || (method === "GET" && on === "bucket")) {
    throw new S3Error("NotImplemented", `${method} ?${asked.join("&")} on a ${on} is not supported.`);
  }
  throw new S3Error("MethodNotAllowed", `${method} is not allowed against a ${on}.`);
}
