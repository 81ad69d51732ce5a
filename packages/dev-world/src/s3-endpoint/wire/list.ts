/**
 * ListObjectsV2: prefix, delimiter, start-after, continuation and encoding-type=url.
 */
import type { Validators } from "./conditions.ts";
import { S3Error } from "./s3-error.ts";
import { encodeRfc3986 } from "./signature.ts";
import { element, xmlDocument } from "./xml.ts";

/** An object as a list shows it. */
export interface ListedObject extends Validators {
  readonly key: string;
  readonly bytes: number;
}

const LISTED_KEYS_MAX = 1000;

/**
 * Returns the XML of the answer. Throws S3Error InvalidArgument.
 *
 * @param sorted all keys that the page may be of, in UTF-8 order (`compareUtf8`).
 * @param describe returns the objects of the keys on the page; those that are gone by then it leaves out.
 */
export async function listObjects(
  bucket: string,
  query: URLSearchParams,
  sorted: readonly string[],
  describe: (keys: readonly string[]) => readonly ListedObject[] | Promise<readonly ListedObject[]>,
): Promise<string> {
  const prefix = query.get("prefix") ?? "";
  const delimiter = query.get("delimiter") ?? "";
  const limit = keysMax(query.get("max-keys"));
  const token = query.get("continuation-token");
  const after = token === null ? (query.get("start-after") ?? "") : decodeToken(token);
  const page = takePage(sorted, { prefix, delimiter, limit, after });
  const encoding = query.get("encoding-type");
  if (encoding !== null && encoding !== "url") {
    throw new S3Error("InvalidArgument", "Invalid Encoding Method specified in Request");
  }
  const objects = await describe(page.keys);
  const name = (text: string): string => (encoding === "url" ? encodeRfc3986(text).replaceAll("%2F", "/") : text);
  return xmlDocument(
    "ListBucketResult",
    [
      element("Name", bucket, "text"),
      element("Prefix", name(prefix), "text"),
      delimiter && element("Delimiter", name(delimiter), "text"),
      encoding && element("EncodingType", encoding),
      element("KeyCount", String(objects.length + page.prefixes.length)),
      element("MaxKeys", String(limit)),
      token !== null && element("ContinuationToken", token, "text"),
      element("IsTruncated", String(page.next !== undefined)),
      page.next !== undefined && element("NextContinuationToken", Buffer.from(page.next).toString("base64url")),
      ...objects.map((object) => contents(object, name)),
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

function contents(object: ListedObject, name: (text: string) => string): string {
  return element(
    "Contents",
    element("Key", name(object.key), "text") +
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

/** Compares by UTF-8 bytes, the order in which S3 lists keys. */
export function compareUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
