/** Lists: ListObjectsV2, ListObjectVersions, ListMultipartUploads and ListParts, page by page. */
import { algorithmOfHeader, checksumElement, type ChecksumAlgorithm, type ChecksumType } from "./checksum.ts";
import type { Validators } from "./conditions.ts";
import { S3Error } from "./s3-error.ts";
import { encodeRfc3986 } from "./signature.ts";
import { element, xmlDocument } from "./xml.ts";

/** An object as a list shows it. */
export interface ListedObject extends Validators {
  readonly key: string;
  readonly bytes: number;
}

const LISTED_MAX = 1000;

/** A key of a list. A backend may add what it needs to describe the object. */
export interface ListedKey {
  readonly key: string;
}

/** The keys that begin with one prefix. */
export interface SortedKeys<T extends ListedKey = ListedKey> {
  /** The keys behind a text, which need not be a key, in UTF-8 order (`compareUtf8`), as far as they are read. */
  behind(after: string): AsyncIterable<T> | Iterable<T>;
}

/** Keys, and what to tell of those on a page. */
export interface KeyList extends SortedKeys {
  /** Describes the objects of a page, without those that are gone. */
  describe(page: readonly ListedKey[]): readonly ListedObject[] | Promise<readonly ListedObject[]>;
}

/** The bucket that is listed, and who owns everything in it. */
export interface ListedBucket {
  readonly bucket: string;
  readonly owner: string;
}

/**
 * Returns the XML of ListObjectsV2, or of ListObjects without `list-type`. Throws S3Error InvalidArgument.
 */
export async function listObjects(
  { bucket, owner }: ListedBucket,
  query: URLSearchParams,
  list: KeyList,
): Promise<string> {
  const version = query.get("list-type") ?? "1";
  if (version !== "1" && version !== "2") throw new S3Error("InvalidArgument", `list-type=${version} is unknown.`);
  const { prefix, delimiter, encoding, name } = namesOf(query);
  const limit = limitOf(query.get("max-keys"), "max-keys");
  const token = query.get("continuation-token");
  const startAfter = query.get("start-after");
  const marker = query.get("marker") ?? "";
  const after = continuedAt(query) || (version === "1" ? "" : (startAfter ?? ""));
  const page = await takePage(list, { prefix, delimiter, limit, after });
  const objects = await list.describe(page.keys);
  const fetchOwner = query.get("fetch-owner") ?? String(version === "1");
  if (!["true", "false"].includes(fetchOwner)) throw new S3Error("InvalidArgument", "fetch-owner is true or false.");
  const ownerOf = fetchOwner === "true" ? ownerElement("Owner", owner) : "";
  const position =
    version === "1"
      ? [
          element("Marker", name(marker), "text"),
          // S3 omits it where the last key of the page says the same.
          page.next !== undefined && delimiter && element("NextMarker", name(page.next), "text"),
        ]
      : [
          element("KeyCount", String(objects.length + page.prefixes.length)),
          token !== null && element("ContinuationToken", token, "text"),
          startAfter !== null && element("StartAfter", name(startAfter), "text"),
          page.next !== undefined && element("NextContinuationToken", Buffer.from(page.next).toString("base64url")),
        ];
  return xmlDocument(
    "ListBucketResult",
    joined(
      element("Name", bucket, "text"),
      element("Prefix", name(prefix), "text"),
      delimiter && element("Delimiter", name(delimiter), "text"),
      encoding && element("EncodingType", encoding),
      element("MaxKeys", String(limit)),
      element("IsTruncated", String(page.next !== undefined)),
      ...position,
      ...objects.map((object) => contents("Contents", object, name, ownerOf)),
      ...page.prefixes.map((common) => commonPrefix(name(common))),
    ),
  );
}

function continuedAt(query: URLSearchParams): string {
  if (query.get("list-type") !== "2") return query.get("marker") ?? "";
  const token = query.get("continuation-token") ?? "";
  return token === "" ? "" : decodeToken(token);
}

/** A version of an object as a list shows it, or that the object was removed. */
export interface ListedVersion extends Validators {
  readonly key: string;
  readonly versionId: string;
  readonly isLatest: boolean;
  /** Undefined of a delete marker. */
  readonly bytes: number | undefined;
}

/** Keys, and what to tell of their versions. */
export interface VersionList extends SortedKeys {
  /** Returns the versions of some keys, in the order of the keys, and the newest first of each. */
  describe(page: readonly ListedKey[]): Promise<readonly ListedVersion[]>;
}

/** A key may have many versions, so that a page needs fewer keys than it has entries. */
const DESCRIBED_AT_A_TIME = 50;

/** Returns the XML of ListObjectVersions. Throws S3Error InvalidArgument. */
export async function listVersions(
  { bucket, owner }: ListedBucket,
  query: URLSearchParams,
  list: VersionList,
): Promise<string> {
  const { prefix, delimiter, encoding, name } = namesOf(query);
  const limit = limitOf(query.get("max-keys"), "max-keys");
  const keyMarker = query.get("key-marker") ?? "";
  const idMarker = query.get("version-id-marker") ?? "";
  if (idMarker !== "" && keyMarker === "") {
    throw new S3Error("InvalidArgument", "A version-id marker cannot be specified without a key marker.");
  }
  const entries: (ListedVersion | { readonly key: string; readonly versionId: undefined })[] = [];
  if (idMarker !== "") {
    // The rest of the key in which the page before ended. All of it where that version is gone by now.
    const own = await list.describe([{ key: keyMarker }]);
    entries.push(...own.slice(own.findIndex(({ versionId }) => versionId === idMarker) + 1));
  }
  let after = limit > 0 ? keyMarker : undefined;
  const taken = Math.min(limit, DESCRIBED_AT_A_TIME);
  // One entry more than the page has shows that another one follows.
  while (after !== undefined && entries.length <= limit) {
    const page = await takePage(list, { prefix, delimiter, limit: taken, after });
    const folded = page.prefixes.map((key) => ({ key, versionId: undefined }));
    entries.push(...[...(await list.describe(page.keys)), ...folded].toSorted((a, b) => compareUtf8(a.key, b.key)));
    after = page.next;
  }
  const shown = entries.slice(0, limit);
  const last = entries.length > limit ? shown.at(-1) : undefined;
  const ownerOf = ownerElement("Owner", owner);
  return xmlDocument(
    "ListVersionsResult",
    joined(
      element("Name", bucket, "text"),
      element("Prefix", name(prefix), "text"),
      element("KeyMarker", name(keyMarker), "text"),
      element("VersionIdMarker", idMarker, "text"),
      last && element("NextKeyMarker", name(last.key), "text"),
      last?.versionId && element("NextVersionIdMarker", last.versionId, "text"),
      element("MaxKeys", String(limit)),
      delimiter && element("Delimiter", name(delimiter), "text"),
      encoding && element("EncodingType", encoding),
      element("IsTruncated", String(last !== undefined)),
      ...shown.map((entry) =>
        entry.versionId === undefined ? commonPrefix(name(entry.key)) : versionElement(entry, name, ownerOf),
      ),
    ),
  );
}

function versionElement(listed: ListedVersion, name: (text: string) => string, owner: string): string {
  const { bytes, key, versionId, isLatest } = listed;
  const own = element("VersionId", versionId, "text") + element("IsLatest", String(isLatest));
  if (bytes !== undefined) return contents("Version", { ...listed, bytes }, name, own + owner);
  const modified = element("LastModified", new Date(listed.modifiedMs).toISOString());
  return element("DeleteMarker", element("Key", name(key), "text") + own + modified + owner);
}

/** An upload as a list shows it. */
export interface ListedUpload {
  readonly id: string;
  readonly key: string;
  readonly startedMs: number;
  readonly checksum?: UploadChecksum | undefined;
}

/** How the parts of an upload are checked. */
export interface UploadChecksum {
  readonly algorithm: ChecksumAlgorithm;
  readonly type: ChecksumType;
}

/** Returns the XML of ListMultipartUploads. Throws S3Error InvalidArgument. */
export function listUploads(
  { bucket, owner }: ListedBucket,
  query: URLSearchParams,
  uploads: readonly ListedUpload[],
): string {
  const { prefix, delimiter, encoding, name } = namesOf(query);
  const limit = limitOf(query.get("max-uploads"), "max-uploads");
  const keyMarker = query.get("key-marker") ?? "";
  const idMarker = keyMarker === "" ? "" : (query.get("upload-id-marker") ?? "");
  const ordered = uploads.toSorted(
    (a, b) => compareUtf8(a.key, b.key) || a.startedMs - b.startedMs || (a.id < b.id ? -1 : 1),
  );
  const marked = ordered.findIndex(({ key, id }) => key === keyMarker && id === idMarker);
  const isAfter = (upload: ListedUpload, at: number): boolean =>
    compareUtf8(upload.key, keyMarker) > 0 || (upload.key === keyMarker && marked >= 0 && at > marked);
  const below = ordered.filter(
    (upload, at) => upload.key.startsWith(prefix) && (keyMarker === "" || isAfter(upload, at)),
  );
  const shown: ListedUpload[] = [];
  const prefixes: string[] = [];
  let isTruncated = false;
  let last: { readonly key: string; readonly id: string } | undefined;
  for (const upload of below) {
    const common = commonOf(upload.key, prefix, delimiter);
    if (common !== undefined && (common === prefixes.at(-1) || common === keyMarker)) continue;
    if (shown.length + prefixes.length >= limit) {
      isTruncated = limit > 0;
      break;
    }
    if (common === undefined) shown.push(upload);
    else prefixes.push(common);
    last = common === undefined ? upload : { key: common, id: "" };
  }
  return xmlDocument(
    "ListMultipartUploadsResult",
    joined(
      element("Bucket", bucket, "text"),
      element("KeyMarker", name(keyMarker), "text"),
      element("UploadIdMarker", idMarker, "text"),
      isTruncated && element("NextKeyMarker", name(last!.key), "text"),
      isTruncated && element("NextUploadIdMarker", last!.id, "text"),
      element("Prefix", name(prefix), "text"),
      delimiter && element("Delimiter", name(delimiter), "text"),
      encoding && element("EncodingType", encoding),
      element("MaxUploads", String(limit)),
      element("IsTruncated", String(isTruncated)),
      ...shown.map(({ key, id, startedMs, checksum }) =>
        element(
          "Upload",
          element("Key", name(key), "text") +
            element("UploadId", id, "text") +
            ownerElement("Initiator", owner) +
            ownerElement("Owner", owner) +
            element("StorageClass", "STANDARD") +
            element("Initiated", new Date(startedMs).toISOString()) +
            checksumKind(checksum),
        ),
      ),
      ...prefixes.map((common) => commonPrefix(name(common))),
    ),
  );
}

/** A part as a list shows it. */
export interface ListedPart {
  readonly number: number;
  readonly bytes: number;
  readonly md5: string;
  readonly modifiedMs: number;
  readonly checksums: Readonly<Record<string, string>>;
}

/** Returns the XML of ListParts. Throws S3Error InvalidArgument. */
export function listParts(
  { bucket, owner }: ListedBucket,
  query: URLSearchParams,
  { key, id, checksum }: ListedUpload,
  parts: readonly ListedPart[],
): string {
  const { encoding, name } = namesOf(query);
  const limit = limitOf(query.get("max-parts"), "max-parts");
  const { marker, shown, isTruncated } = partsPage(
    parts.toSorted((a, b) => a.number - b.number),
    limit,
    query.get("part-number-marker"),
  );
  return xmlDocument(
    "ListPartsResult",
    joined(
      element("Bucket", bucket, "text"),
      element("Key", name(key), "text"),
      element("UploadId", id, "text"),
      encoding && element("EncodingType", encoding),
      ownerElement("Initiator", owner),
      ownerElement("Owner", owner),
      element("StorageClass", "STANDARD"),
      element("PartNumberMarker", marker),
      shown.length > 0 && element("NextPartNumberMarker", String(shown.at(-1)!.number)),
      element("MaxParts", String(limit)),
      element("IsTruncated", String(isTruncated)),
      checksumKind(checksum),
      ...shown.map((part) =>
        element(
          "Part",
          element("PartNumber", String(part.number)) +
            element("LastModified", new Date(part.modifiedMs).toISOString()) +
            element("ETag", `"${part.md5}"`, "text") +
            element("Size", String(part.bytes)) +
            checksumElements(part.checksums),
        ),
      ),
    ),
  );
}

/** Returns the page of parts behind the one that `marker` names. Throws S3Error InvalidArgument. */
export function partsPage<T extends { readonly number: number }>(
  parts: readonly T[],
  limit: number,
  marker: string | null | undefined,
): { readonly marker: string; readonly shown: readonly T[]; readonly isTruncated: boolean } {
  const after = marker ?? "0";
  if (!/^\d+$/.test(after)) throw new S3Error("InvalidArgument", "part-number-marker is not a whole number.");
  const behind = parts.filter(({ number }) => number > Number(after));
  const shown = behind.slice(0, limit);
  return { marker: after, shown, isTruncated: limit > 0 && behind.length > shown.length };
}

/** Returns the elements of checksums that are given by header name. */
export function checksumElements(checksums: Readonly<Record<string, string>>): string {
  return joined(
    ...Object.entries(checksums).map(([header, value]) => {
      const algorithm = algorithmOfHeader(header);
      return algorithm && element(checksumElement(algorithm), value, "text");
    }),
  );
}

/** Returns the element of an owner (`Owner`, `Initiator`). */
export function ownerElement(role: string, owner: string): string {
  return element(role, userElements(owner));
}

/** Returns the elements that name a user. */
export function userElements(user: string): string {
  return element("ID", user, "text") + element("DisplayName", user, "text");
}

function checksumKind(checksum: UploadChecksum | undefined): string {
  return checksum ? element("ChecksumAlgorithm", checksum.algorithm) + element("ChecksumType", checksum.type) : "";
}

function commonPrefix(prefix: string): string {
  return element("CommonPrefixes", element("Prefix", prefix, "text"));
}

function joined(...parts: readonly (string | false | null | undefined)[]): string {
  return parts.filter((part) => typeof part === "string").join("");
}

/** Parameters of every list: the keys that it shows, and how they are written. */
function namesOf(query: URLSearchParams): {
  readonly prefix: string;
  readonly delimiter: string;
  readonly encoding: string | null;
  readonly name: (text: string) => string;
} {
  const encoding = query.get("encoding-type");
  if (encoding !== null && encoding !== "url") {
    throw new S3Error("InvalidArgument", "Invalid Encoding Method specified in Request");
  }
  return {
    prefix: query.get("prefix") ?? "",
    delimiter: query.get("delimiter") ?? "",
    encoding,
    name: (text) => (encoding === "url" ? encodeRfc3986(text).replaceAll("%2F", "/") : text),
  };
}

interface Page<T extends ListedKey> {
  readonly keys: T[];
  readonly prefixes: string[];
  /** The next page starts after it. Undefined at the end. */
  readonly next: string | undefined;
}

/** To begin a list anew behind the keys below a prefix costs as much as to read so many of them. */
const FOLDED_MAX = 1000;

async function takePage<T extends ListedKey>(
  list: SortedKeys<T>,
  { prefix, delimiter, limit, after }: { prefix: string; delimiter: string; limit: number; after: string },
): Promise<Page<T>> {
  const keys: T[] = [];
  const prefixes: string[] = [];
  let last = after;
  // A page of nothing is complete: to continue it would never end.
  if (limit === 0) return { keys, prefixes, next: undefined };
  // A page that ends with a common prefix continues after all keys below that prefix.
  const isFolded = after.startsWith(prefix) && commonOf(after, prefix, delimiter) === after;
  let from: string | undefined = isFolded ? `${after}${GREATEST}` : after;
  while (from !== undefined) {
    const rest = list.behind(from);
    from = undefined;
    let folded = 0;
    for await (const entry of rest) {
      const common = commonOf(entry.key, prefix, delimiter);
      if (common !== undefined && (common === prefixes.at(-1) || common === after)) {
        if (++folded < FOLDED_MAX || compareUtf8(entry.key, `${common}${GREATEST}`) >= 0) continue;
        from = `${common}${GREATEST}`;
        break;
      }
      if (keys.length + prefixes.length === limit) return { keys, prefixes, next: last };
      if (common === undefined) keys.push(entry);
      else prefixes.push(common);
      last = common ?? entry.key;
      folded = 0;
    }
  }
  return { keys, prefixes, next: undefined };
}

/** Hardly a key is behind a prefix and this. */
const GREATEST = "\u{10ffff}";

/** Returns what `key` is folded into; undefined when it is listed itself. */
function commonOf(key: string, prefix: string, delimiter: string): string | undefined {
  const at = delimiter ? key.indexOf(delimiter, prefix.length) : -1;
  return at < 0 ? undefined : key.slice(0, at + delimiter.length);
}

function contents(
  root: "Contents" | "Version",
  object: ListedObject,
  name: (text: string) => string,
  owner: string,
): string {
  return element(
    root,
    element("Key", name(object.key), "text") +
      element("LastModified", new Date(object.modifiedMs).toISOString()) +
      element("ETag", object.etag, "text") +
      element("Size", String(object.bytes)) +
      owner +
      element("StorageClass", "STANDARD"),
  );
}

/** Returns how many a page has at most: what `value` of the parameter or header `name` says. */
export function limitOf(value: string | null | undefined, name: string): number {
  if (value === null || value === undefined || value === "") return LISTED_MAX;
  if (!/^\d{1,15}$/.test(value)) throw new S3Error("InvalidArgument", `${name} is not a whole number.`);
  return Math.min(Number(value), LISTED_MAX);
}

function decodeToken(token: string): string {
  const text = Buffer.from(token, "base64url").toString();
  if (text === "" || Buffer.from(text).toString("base64url") !== token)
    throw new S3Error("InvalidArgument", "The continuation token provided is incorrect.");
  return text;
}

/** Compares by UTF-8 bytes, the order in which S3 lists keys. */
export function compareUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
