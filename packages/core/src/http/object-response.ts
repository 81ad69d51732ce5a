/**
 * The HTTP face of an object: status and headers of a GET or HEAD, with ranges and conditions (RFC 9110, sections 13
 * and 14). The service worker and the edge both respond through it.
 */
import { AgaroseError, HAS_MESSAGES, toAgaroseError } from "../errors.ts";
import { HAS_ENCRYPTION } from "../features.ts";
import type { Manifest } from "../format/manifest/index.ts";
import { contentRange, parseRange, type ByteRange } from "./range.ts";

/** How to respond to a request for an object. */
export interface ObjectAnswer {
  readonly status: 200 | 206 | 304 | 412;
  readonly headers: Record<string, string>;
  /** The bytes to send for a GET; undefined if the response has no body. */
  readonly range?: ByteRange | undefined;
  /** Content codings that the reader has to undo, the innermost last; undefined if the bytes go out as stored. */
  readonly codings?: readonly string[] | undefined;
}

/** The content codings that a browser decodes. A response with any other coding is left as it is. */
const CODINGS = /^(?:x-gzip|gzip|deflate|br|zstd)$/;

/** Returns the content codings of a header value that browsers undo, in the order in which to undo them. */
export function codingsOf(contentEncoding: string | undefined): readonly string[] {
  const codings = (contentEncoding ?? "")
    .toLowerCase()
    .split(",")
    .map((coding) => coding.trim())
    .filter((coding) => coding && coding !== "identity")
    .toReversed();
  return codings.every((coding) => CODINGS.test(coding)) ? codings : [];
}

/**
 * A type that a browser may show as a document with scripts. It may be anywhere in the value: browsers read lists of
 * types.
 */
const DOCUMENT = /\b(html|xml|xsl|pdf)\b/i;
/**
 * No scripts, no origin and no requests: an object must not act as a page of the app. Inline styles keep SVG as drawn.
 */
const DOCUMENT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:";

/**
 * Decides the response to a GET or HEAD of an object from the request's headers. A HEAD with a range gets the head of
 * the 206, as from other servers: clients find out by it whether ranges are served.
 *
 * @param manifest of an encrypted object, what `openEncrypted` shows of it.
 * @param decodes whether the reader undoes content codings. The answer of a coded object is then about the decoded
 *   bytes: it is whole, because positions in them are unknown, and its entity tag is weak.
 * @throws RANGE_UNSATISFIABLE, for which `errorAnswer` makes the response, or SECRET_MISSING.
 */
export function objectAnswer(
  manifest: Manifest,
  request: { get(name: string): string | null },
  decodes = false,
): ObjectAnswer {
  // The stored bytes must never pass for the content.
  if (HAS_ENCRYPTION && manifest.encryption) {
    const { key, encryption } = manifest;
    const found =
      HAS_MESSAGES && `${JSON.stringify(key)} is encrypted by the secret ${encryption.secret}, which is not here`;
    throw new AgaroseError("SECRET_MISSING", found, { key, secret: encryption.secret });
  }
  const codings = decodes ? codingsOf(manifest.headers["content-encoding"]) : [];
  const isDecoded = codings.length > 0;
  const etag = etagOf(manifest);
  const headers: Record<string, string> & Validators = {
    "accept-ranges": "bytes",
    "cache-control": "public, max-age=0, must-revalidate",
    ...manifest.headers,
    "content-type": manifest.contentType,
    etag: isDecoded ? `W/${etag}` : etag,
    "last-modified": new Date(manifest.modified).toUTCString(),
    "x-content-type-options": "nosniff",
  };
  if (DOCUMENT.test(manifest.contentType)) {
    // A policy of the object's own is one more, which can forbid and never allow.
    const own = manifest.headers["content-security-policy"];
    headers["content-security-policy"] = own ? `${own}, ${DOCUMENT_POLICY}` : DOCUMENT_POLICY;
  }
  if (isDecoded) {
    delete headers["content-encoding"];
    delete headers["accept-ranges"];
  }
  const condition = failedCondition(headers, request);
  if (condition) return { status: condition, headers };
  // An empty object has no byte to send as a range: it is sent whole. Nor has it anything to decode.
  const ranged = !isDecoded && manifest.bytes > 0 && isRangeValid(headers, request);
  const part = ranged ? parseRange(request.get("range"), manifest.bytes) : undefined;
  const range = part ?? { start: 0, end: manifest.bytes };
  if (isDecoded && manifest.bytes > 0) return { status: 200, headers, range, codings };
  headers["content-length"] = String(range.end - range.start);
  if (part) headers["content-range"] = contentRange(part, manifest.bytes);
  return { status: part ? 206 : 200, headers, range };
}

/** Forbids shared caches to keep the answer of a private key, and makes the client's own cache revalidate it. */
export function unshared<A extends Pick<ObjectAnswer, "headers">>(answer: A): A {
  return { ...answer, headers: { ...answer.headers, "cache-control": "private, no-cache" } };
}

/** Returns status, headers and JSON body of the response that reports an error. A 416 carries the object's length. */
export function errorAnswer(cause: unknown): { status: number; headers: Record<string, string>; body: string } {
  const error = toAgaroseError(cause);
  const headers: Record<string, string> = {
    "cache-control": "no-store",
    "content-type": "application/json",
    "x-agarose-error": error.code,
  };
  if (error.code === "RANGE_UNSATISFIABLE") headers["content-range"] = `bytes */${String(error.details["bytes"])}`;
  return { status: error.httpStatus, headers, body: `${JSON.stringify({ error })}\n` };
}

/**
 * Returns the key in a URL path below `prefix` (`/ec/`), or undefined if the path is outside it. Throws KEY_INVALID.
 */
export function keyInPath(pathname: string, prefix: string): string | undefined {
  if (!pathname.startsWith(prefix) || pathname === prefix) return undefined;
  return keyOfPath(pathname.slice(prefix.length));
}

/** Returns the key of a percent-encoded `path`. Throws KEY_INVALID if that is not UTF-8. */
export function keyOfPath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch (error) {
    throw new AgaroseError("KEY_INVALID", HAS_MESSAGES && `path ${path} is not percent-encoded UTF-8`, { path }, error);
  }
}

/** Returns the entity tag of an object: its version in quotes. */
export function etagOf(manifest: Manifest): string {
  return `"${manifest.version}"`;
}

/** The date that conditions are compared with, as it is in the response: HTTP dates have whole seconds. */
export interface Validators {
  readonly etag: string;
  readonly "last-modified": string;
}

/** Returns 412 or 304 if a precondition fails, in the order of RFC 9110, section 13.2.2. */
export function failedCondition(
  validators: Validators,
  request: { get(name: string): string | null },
): 304 | 412 | undefined {
  const { etag, "last-modified": modified } = validators;
  const ifMatch = request.get("if-match");
  const ifNoneMatch = request.get("if-none-match");
  const since = (name: string): number => parseHttpDate(modified) - parseHttpDate(request.get(name));
  const opaque = etag.replace("W/", "");
  // A weak tag never passes the strong comparison of If-Match.
  if (ifMatch === null ? since("if-unmodified-since") > 0 : !namesAny(ifMatch, opaque === etag ? [etag] : [])) {
    return 412;
  }
  const weakly = [opaque, `W/${opaque}`];
  const isSame = ifNoneMatch === null ? since("if-modified-since") <= 0 : namesAny(ifNoneMatch, weakly);
  return isSame ? 304 : undefined;
}

/** Whether `If-Range` allows a range: it must name this very version (RFC 9110, section 13.1.5). */
export function isRangeValid(validators: Validators, request: { get(name: string): string | null }): boolean {
  const ifRange = request.get("if-range");
  return (
    ifRange === null ||
    ifRange === validators.etag ||
    parseHttpDate(ifRange) === parseHttpDate(validators["last-modified"])
  );
}

/** Returns the milliseconds of an HTTP date in any of its three forms (RFC 9110, section 5.6.7); NaN for others. */
function parseHttpDate(text: string | null): number {
  const trimmed = text?.trim() ?? "";
  if (/^[a-z]{3} [a-z]{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$/i.test(trimmed)) return Date.parse(`${trimmed} GMT`);
  return /^[a-z]+, .* GMT$/i.test(trimmed) ? Date.parse(trimmed) : Number.NaN;
}

function namesAny(header: string, etags: readonly string[]): boolean {
  return header.trim() === "*" || header.split(",").some((candidate) => etags.includes(candidate.trim()));
}
