/**
 * The HTTP face of an object: status and headers of a GET or HEAD, with ranges and conditions (RFC 9110, sections 13
 * and 14). The service worker and the edge answer alike because both answer from here.
 */
import { AgaroseError, HAS_MESSAGES, toAgaroseError } from "../errors.ts";
import type { Manifest } from "../format/manifest.ts";
import { contentRange, parseRange, type ByteRange } from "./range.ts";

export interface ObjectAnswer {
  readonly status: 200 | 206 | 304 | 412;
  readonly headers: Record<string, string>;
  /** The bytes to send for a GET; undefined when the answer has no body. */
  readonly range?: ByteRange | undefined;
}

/**
 * Decides the answer to a GET or HEAD of an object; ranges are for GET only (RFC 9110 14.2). Throws RANGE_UNSATISFIABLE
 * (see `errorAnswer`).
 */
export function objectAnswer(
  manifest: Manifest,
  request: { get(name: string): string | null },
  method: "GET" | "HEAD" = "GET",
): ObjectAnswer {
  const headers: Record<string, string> & Told = {
    "accept-ranges": "bytes",
    "cache-control": "public, max-age=0, must-revalidate",
    ...manifest.headers,
    "content-type": manifest.contentType,
    etag: etagOf(manifest),
    "last-modified": new Date(manifest.modified).toUTCString(),
    "x-content-type-options": "nosniff",
  };
  const condition = failedCondition(headers, request);
  if (condition) return { status: condition, headers };
  // An empty object has no part that could be sent as a range: it is sent whole.
  const ranged = method === "GET" && manifest.bytes > 0 && rangeStillValid(headers, request);
  const part = ranged ? parseRange(request.get("range"), manifest.bytes) : undefined;
  const range = part ?? { start: 0, end: manifest.bytes };
  headers["content-length"] = String(range.end - range.start);
  if (part) headers["content-range"] = contentRange(part, manifest.bytes);
  return { status: part ? 206 : 200, headers, range };
}

/** Status, headers and JSON body that report `error`; a 416 carries the object's length. */
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

/** The key in a URL path below `prefix` (`/ec/`), or undefined when the path is outside it. Throws KEY_INVALID. */
export function keyInPath(pathname: string, prefix: string): string | undefined {
  if (!pathname.startsWith(prefix) || pathname === prefix) return undefined;
  return keyOfPath(pathname.slice(prefix.length));
}

/** The key that stands in a URL as `path`. Throws KEY_INVALID. */
export function keyOfPath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch (error) {
    throw new AgaroseError("KEY_INVALID", HAS_MESSAGES && `path ${path} is not percent-encoded UTF-8`, { path }, error);
  }
}

export function etagOf(manifest: Manifest): string {
  return `"${manifest.version}"`;
}

/** What conditions compare with, as it is told: HTTP dates have whole seconds. */
interface Told {
  readonly etag: string;
  readonly "last-modified": string;
}

/** RFC 9110 13.2.2: 412 or 304 when a precondition fails, in the order that section gives. */
function failedCondition(told: Told, request: { get(name: string): string | null }): 304 | 412 | undefined {
  const { etag, "last-modified": modified } = told;
  const ifMatch = request.get("if-match");
  const ifNoneMatch = request.get("if-none-match");
  const since = (name: string): number => parseHttpDate(modified) - parseHttpDate(request.get(name));
  if (ifMatch === null ? since("if-unmodified-since") > 0 : !namesAny(ifMatch, [etag])) return 412;
  const isSame = ifNoneMatch === null ? since("if-modified-since") <= 0 : namesAny(ifNoneMatch, [etag, `W/${etag}`]);
  return isSame ? 304 : undefined;
}

/** RFC 9110 13.1.5: a range counts only while `If-Range` names this very version. */
function rangeStillValid(told: Told, request: { get(name: string): string | null }): boolean {
  const ifRange = request.get("if-range");
  return ifRange === null || ifRange === told.etag || parseHttpDate(ifRange) === parseHttpDate(told["last-modified"]);
}

/** Milliseconds of an HTTP date in any of its three forms (RFC 9110 5.6.7); NaN, which no condition meets, for others. */
function parseHttpDate(text: string | null): number {
  const trimmed = text?.trim() ?? "";
  if (/^[a-z]{3} [a-z]{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$/i.test(trimmed)) return Date.parse(`${trimmed} GMT`);
  return /^[a-z]+, .* GMT$/i.test(trimmed) ? Date.parse(trimmed) : Number.NaN;
}

function namesAny(header: string, etags: readonly string[]): boolean {
  return header.trim() === "*" || header.split(",").some((candidate) => etags.includes(candidate.trim()));
}
