/**
 * The HTTP face of an object: status and headers of a GET or HEAD, with ranges and conditions (RFC 9110, sections 13
 * and 14). The service worker and the edge answer alike because both answer from here.
 */
import { AgaroseError, toAgaroseError } from "./errors.ts";
import type { Manifest } from "./manifest.ts";
import { contentRange, parseRange, type ByteRange } from "./range.ts";

export interface ObjectAnswer {
  readonly status: 200 | 206 | 304 | 412;
  readonly headers: Record<string, string>;
  /** The bytes to send for a GET; undefined when the answer has no body. */
  readonly range: ByteRange | undefined;
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
  const headers: Record<string, string> = {
    "accept-ranges": "bytes",
    "cache-control": "public, max-age=0, must-revalidate",
    ...manifest.headers,
    "content-type": manifest.contentType,
    etag: etagOf(manifest),
    "last-modified": new Date(manifest.modified).toUTCString(),
    "x-content-type-options": "nosniff",
  };
  const condition = failedCondition(manifest, request);
  if (condition) return { status: condition, headers, range: undefined };
  const whole = { start: 0, end: manifest.bytes };
  // An empty object has no part that could be sent as a range: it is sent whole.
  const ranged = method === "GET" && manifest.bytes > 0 && rangeStillValid(manifest, request);
  const range = ranged ? parseRange(request.get("range"), manifest.bytes) : undefined;
  headers["content-length"] = String(range ? range.end - range.start : manifest.bytes);
  if (!range) return { status: 200, headers, range: whole };
  headers["content-range"] = contentRange(range, manifest.bytes);
  return { status: 206, headers, range };
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
  try {
    return decodeURIComponent(pathname.slice(prefix.length));
  } catch (error) {
    throw new AgaroseError("KEY_INVALID", `path ${pathname} is not percent-encoded UTF-8`, { pathname }, error);
  }
}

export function etagOf(manifest: Manifest): string {
  return `"${manifest.version}"`;
}

/** RFC 9110 13.2.2: 412 or 304 when a precondition fails, in the order that section gives. */
function failedCondition(manifest: Manifest, request: { get(name: string): string | null }): 304 | 412 | undefined {
  const modified = lastModifiedMs(manifest);
  const ifMatch = request.get("if-match");
  if (ifMatch !== null) {
    if (!matchesEtag(ifMatch, manifest, false)) return 412;
  } else {
    const since = parseHttpDate(request.get("if-unmodified-since"));
    if (modified > since) return 412;
  }
  const ifNoneMatch = request.get("if-none-match");
  if (ifNoneMatch !== null) return matchesEtag(ifNoneMatch, manifest, true) ? 304 : undefined;
  const since = parseHttpDate(request.get("if-modified-since"));
  return modified <= since ? 304 : undefined;
}

/** RFC 9110 13.1.5: a range counts only while `If-Range` names this very version. */
function rangeStillValid(manifest: Manifest, request: { get(name: string): string | null }): boolean {
  const ifRange = request.get("if-range");
  if (ifRange === null) return true;
  if (/^(W\/)?"/.test(ifRange)) return ifRange === etagOf(manifest);
  return parseHttpDate(ifRange) === lastModifiedMs(manifest);
}

/** HTTP dates have whole seconds. */
function lastModifiedMs(manifest: Manifest): number {
  return Math.floor(Date.parse(manifest.modified) / 1000) * 1000;
}

/** Milliseconds of an HTTP date in any of its three forms (RFC 9110 5.6.7); NaN, which no condition meets, for others. */
function parseHttpDate(text: string | null): number {
  const trimmed = text?.trim() ?? "";
  if (/^[a-z]{3} [a-z]{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$/i.test(trimmed)) return Date.parse(`${trimmed} GMT`);
  return /^[a-z]+, .* GMT$/i.test(trimmed) ? Date.parse(trimmed) : Number.NaN;
}

function matchesEtag(header: string, manifest: Manifest, weak: boolean): boolean {
  if (header.trim() === "*") return true;
  const etag = etagOf(manifest);
  return header.split(",").some((candidate) => {
    const trimmed = candidate.trim();
    return trimmed === etag || (weak && trimmed === `W/${etag}`);
  });
}
