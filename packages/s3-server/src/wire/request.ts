/** One request in terms of S3: whom it comes from, what it addresses, and its parameters from header and query. */
import type { IncomingMessage } from "node:http";
import { S3Error } from "./s3-error.ts";
import { checkSignature, decode, queryPairs, type Credentials, type SigningContext } from "./signature.ts";

/** Which object a request is about. */
export interface ObjectName {
  readonly bucket: string;
  readonly key: string;
}

/** The current version of an object, or the one that a client names. */
export interface VersionName extends ObjectName {
  readonly versionId?: string | undefined;
}

/** A request whose signature holds, or that has none. */
export interface S3Request {
  readonly method: string;
  /** Decoded. Empty for the service itself. */
  readonly bucket: string;
  /** Decoded. Empty when the request addresses the bucket itself. */
  readonly key: string;
  /** Without the fields of a signature, and without what `headers` has taken from the query. */
  readonly query: URLSearchParams;
  /**
   * By lower-case name. Each letter is a byte, as HTTP has them. An `x-amz-*` parameter of the query is here, as SDKs
   * put headers there when they presign.
   */
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined for an anonymous request. */
  readonly signing: SigningContext | undefined;
}

/** The query parameters of a presigned URL that are its signature. */
const SIGNATURE = new Set([
  "X-Amz-Algorithm",
  "X-Amz-Credential",
  "X-Amz-Date",
  "X-Amz-Expires",
  "X-Amz-SignedHeaders",
  "X-Amz-Signature",
]);

/** A browser's preflight is not signed, and a server with CORS has answered it before. */
function refusePreflight({ method, headers }: IncomingMessage): void {
  if (method !== "OPTIONS") return;
  if (headers.origin === undefined) {
    throw new S3Error("BadRequest", "Insufficient information. Origin request header needed.");
  }
  throw new S3Error("AccessForbidden", "CORSResponse: CORS is not enabled for this bucket.");
}

/** The pairs of keys that may sign, and the way of naming the bucket. */
export interface RequestRules {
  readonly pairs: readonly Credentials[];
  readonly nowMs: number;
  /** A request to `BUCKET.<domain>` is for that bucket. Default: its path begins with the bucket. */
  readonly domain?: string | undefined;
}

/** Reads the head of a request. Throws S3Error InvalidURI, InvalidArgument, or what `checkSignature` throws. */
export function readRequest(request: IncomingMessage, { pairs, nowMs, domain }: RequestRules): S3Request {
  const [path = "", ...rest] = (request.url ?? "/").split("?");
  const query = rest.join("?");
  const host = (request.headers.host ?? "").toLowerCase().replace(/:\d+$/, "");
  const ofHost = domain !== undefined && host.endsWith(`.${domain}`) ? host.slice(0, -domain.length - 1) : "";
  const [, bucket = "", ...segments] = `${ofHost && `/${ofHost}`}${path}`.split("/");
  const { method = "GET" } = request;
  refusePreflight(request);
  const signed = { method, path, query, headers: request.headersDistinct };
  const signing = checkSignature(signed, pairs, nowMs);
  const isPresigned = signing !== undefined && request.headers.authorization === undefined;
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) headers[name] = String(value);
  const parameters: [string, string][] = [];
  for (const [name, value] of queryPairs(query)) {
    const lower = name.toLowerCase();
    if (isPresigned && SIGNATURE.has(name)) continue;
    const bytes = Buffer.from(value).toString("latin1");
    if (!lower.startsWith("x-amz-")) parameters.push([name, value]);
    else if (headers[lower] === undefined || headers[lower] === bytes) headers[lower] = bytes;
    else throw new S3Error("InvalidArgument", `${lower} has two values.`);
  }
  return {
    method,
    bucket: decode(bucket),
    key: decode(segments.join("/")),
    query: new URLSearchParams(parameters),
    headers,
    signing,
  };
}
