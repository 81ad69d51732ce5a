/** The headers of an object: what a write keeps of its request, and what a read answers. */
import { mayKeepHeader } from "@agarose/core/format";
import { OVERRIDES } from "./operations.ts";
import { countOf, PARTS } from "./parts.ts";
import type { S3Request } from "./request.ts";
import { S3Error } from "./s3-error.ts";
import { keptTags, TAGGING, tagsIn } from "./tags.ts";

/** Headers with the one value that is true of every object here. */
const ONLY_VALUES = { "x-amz-acl": "private", "x-amz-storage-class": "STANDARD" };
const METADATA_BYTES_MAX = 2048;
const METADATA = "x-amz-meta-";

/** Forms of the headers that an object does not keep unchanged. */
const OWN_FORMS: Readonly<Record<string, (value: string) => string>> = {
  "content-encoding": ownEncodings,
  [TAGGING]: (value) => keptTags(tagsIn(value)),
};

/** The headers that an object keeps of the request that writes it. */
export interface KeptHeaders {
  readonly contentType: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Returns the type and the headers that an object keeps.
 *
 * @throws S3Error NotImplemented for another ACL or storage class, InvalidArgument for metadata whose name cannot be a
 *   header, MetadataTooLarge, or what `keptTags` throws.
 */
export function keptHeaders({ headers }: Pick<S3Request, "headers">): KeptHeaders {
  for (const [name, only] of Object.entries(ONLY_VALUES)) {
    const value = headers[name];
    if (value !== undefined && value !== only) {
      throw new S3Error("NotImplemented", `${name} may only be ${only}, and is ${value}.`);
    }
  }
  const kept: Record<string, string> = {};
  let metadataBytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(METADATA) && !mayKeepHeader(name)) {
      throw new S3Error("InvalidArgument", `${JSON.stringify(name)} cannot be the name of a header.`);
    }
    if (!mayKeepHeader(name) || isChecksum(name)) continue;
    if (name.startsWith(METADATA)) {
      metadataBytes += name.length - METADATA.length + value.length;
      kept[name] = encodedWord(name, value);
      continue;
    }
    const text = OWN_FORMS[name]?.(value) ?? value;
    if (text !== "") kept[name] = text;
  }
  if (metadataBytes > METADATA_BYTES_MAX) {
    const message =
      `Your metadata headers have ${metadataBytes} bytes, which exceeds the maximum allowed metadata size of ` +
      `${METADATA_BYTES_MAX} bytes.`;
    throw new S3Error("MetadataTooLarge", message);
  }
  const contentType = headers["content-type"] || "application/octet-stream";
  return { contentType, headers: kept };
}

/** Returns the headers by which a GET or HEAD answers, without those that it did not ask for, and those of a part. */
export function answeredHeaders(
  kept: KeptHeaders & { readonly etag: string },
  request: S3Request,
): Record<string, string> {
  const mode = request.headers["x-amz-checksum-mode"];
  if (mode !== undefined && mode.toUpperCase() !== "ENABLED") {
    throw new S3Error("InvalidArgument", "x-amz-checksum-mode may only be ENABLED.");
  }
  // The checksum that is kept covers the whole object, so a part of it goes without.
  const isPart = request.query.has("partNumber") && countOf(kept.etag) !== undefined;
  const withChecksum = mode !== undefined && request.headers["range"] === undefined && !isPart;
  const { [TAGGING]: tags, ...others } = kept.headers;
  const own = Object.entries(others).filter(([name]) => {
    return isChecksum(name) ? withChecksum && !name.startsWith(PARTS) : true;
  });
  return {
    "content-type": kept.contentType,
    ...Object.fromEntries(own),
    ...(tags !== undefined && { "x-amz-tagging-count": String(tagsIn(tags).length) }),
    ...overrides(request),
  };
}

/** Returns the type and headers of an object with some in place of its own: "" removes one. Checksums are omitted. */
export function describedAs(object: KeptHeaders, others: KeptHeaders["headers"]): KeptHeaders {
  const headers = Object.entries({ ...object.headers, ...others });
  const kept = headers.filter(([name, value]) => !isChecksum(name) && value !== "");
  return { contentType: object.contentType, headers: Object.fromEntries(kept) };
}

function isChecksum(name: string): boolean {
  return name.startsWith("x-amz-checksum-");
}

/** Returns what a 304 has of the headers by which the object would be answered (RFC 9110, section 15.4.5). */
export function notModifiedHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const own = new Set(["cache-control", "etag", "expires", "last-modified"]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => own.has(name)));
}

/** Headers that a signed request asks for by `response-content-type` and the like. */
function overrides({ query, signing }: S3Request): Record<string, string> {
  const asked = OVERRIDES.flatMap((name): [string, string][] => {
    const value = query.get(name);
    return value === null ? [] : [[name.slice("response-".length), value]];
  });
  if (asked.length > 0 && !signing) {
    throw new S3Error("InvalidRequest", "Request specific response headers cannot be used for anonymous GET requests.");
  }
  for (const [name, value] of asked) {
    // Node writes a header in ISO-8859-1, as S3 does.
    if (/^[\t\x20-\x7e\xa0-\xff]*$/.test(value)) continue;
    const message = `Header value cannot be represented using ISO-8859-1: response-${name} ${JSON.stringify(value)}.`;
    throw new S3Error("InvalidArgument", message);
  }
  return Object.fromEntries(asked);
}

/**
 * As S3 answers metadata outside ASCII: a word of RFC 2047. Its bytes came as UTF-8, each of which Node has as a
 * letter. What could end a header and begin another is refused with InvalidArgument.
 */
function encodedWord(name: string, value: string): string {
  if (/[\r\n\0]/.test(value)) throw new S3Error("InvalidArgument", `${name} has a line break or NUL.`);
  return /^[\x20-\x7e]*$/.test(value) ? value : `=?UTF-8?B?${Buffer.from(value, "latin1").toString("base64")}?=`;
}

/** `aws-chunked` describes the transfer, not the object. */
function ownEncodings(value: string): string {
  const names = value.split(",").map((name) => name.trim());
  return names.filter((name) => name !== "" && name !== "aws-chunked").join(", ");
}
