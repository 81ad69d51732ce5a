/**
 * ListObjectsV2: prefix, delimiter, start-after, continuation and encoding-type=url.
 */
import { compareUtf8, type StoredObjects } from "./object-store.ts";
import { S3Error } from "./wire/s3-error.ts";
import { encodeRfc3986 } from "./wire/signature.ts";
import { element, xmlDocument } from "./wire/xml.ts";

const LISTED_KEYS_MAX = 1000;

/** Returns the XML of the answer. Throws S3Error NoSuchBucket or InvalidArgument. */
export function listObjects(store: StoredObjects, bucket: string, query: URLSearchParams): string {
  const prefix = query.get("prefix") ?? "";
  const delimiter = query.get("delimiter") ?? "";
  const limit = keysMax(query.get("max-keys"));
  const token = query.get("continuation-token");
  const after = token === null ? (query.get("start-after") ?? "") : decodeToken(token);
  const page = takePage(store.keys(bucket), { prefix, delimiter, limit, after });
  const encoding = query.get("encoding-type");
  if (encoding !== null && encoding !== "url") {
    throw new S3Error("InvalidArgument", "Invalid Encoding Method specified in Request");
  }
  const name = (text: string): string => (encoding === "url" ? encodeRfc3986(text).replaceAll("%2F", "/") : text);
  return xmlDocument(
    "ListBucketResult",
    [
      element("Name", bucket, "text"),
      element("Prefix", name(prefix), "text"),
      delimiter && element("Delimiter", name(delimiter), "text"),
      encoding && element("EncodingType", encoding),
      element("KeyCount", String(page.keys.length + page.prefixes.length)),
      element("MaxKeys", String(limit)),
      token !== null && element("ContinuationToken", token, "text"),
      element("IsTruncated", String(page.next !== undefined)),
      page.next !== undefined && element("NextContinuationToken", Buffer.from(page.next).toString("base64url")),
      ...page.keys.map((key) => contents(store, bucket, key, name)),
      ...page.prefixes.map((common) => element("CommonPrefixes", element("Prefix", name(common), "text"))),
    ]
      .filter((part) => typeof part === "string")
      .join(""),
  );
}

interface Page {
  readonly keys: string[];
  readonly prefixes: string[];
  /** The next page starts after it. Undefined at the end. */
  readonly next: string | undefined;
}

function takePage(
  sorted: readonly string[],
  { prefix, delimiter, limit, after }: { prefix: string; delimiter: string; limit: number; after: string },
): Page {
  const keys: string[] = [];
  const prefixes: string[] = [];
  let last = after;
  for (const key of sorted.slice(firstAfter(sorted, after < prefix ? "" : after))) {
    if (!key.startsWith(prefix)) continue;
    const at = delimiter ? key.indexOf(delimiter, prefix.length) : -1;
    const common = at < 0 ? undefined : key.slice(0, at + delimiter.length);
    // A page that ends with a common prefix continues after all keys below that prefix.
    if (common !== undefined && (common === prefixes.at(-1) || common === after)) continue;
    if (keys.length + prefixes.length === limit) return { keys, prefixes, next: last };
    if (common === undefined) keys.push(key);
    else prefixes.push(common);
    last = common ?? key;
  }
  return { keys, prefixes, next: undefined };
}

/** Returns the index of the first key after `after`. */
function firstAfter(sorted: readonly string[], after: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareUtf8(sorted[middle]!, after) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function contents(store: StoredObjects, bucket: string, key: string, name: (text: string) => string): string {
  const object = store.get(bucket, key);
  return element(
    "Contents",
    element("Key", name(key), "text") +
      element("LastModified", new Date(object.modifiedMs).toISOString()) +
      element("ETag", object.etag, "text") +
      element("Size", String(object.bytes)) +
      element("StorageClass", "STANDARD"),
  );
}

function keysMax(value: string | null): number {
  if (value === null) return LISTED_KEYS_MAX;
  const limit = Number(value);
  if (!Number.isInteger(limit) || limit < 0) throw new S3Error("InvalidArgument", "max-keys is not a whole number.");
  return Math.min(limit, LISTED_KEYS_MAX);
}

function decodeToken(token: string): string {
  const text = Buffer.from(token, "base64url").toString();
  if (text === "") throw new S3Error("InvalidArgument", "The continuation token provided is incorrect.");
  return text;
}
