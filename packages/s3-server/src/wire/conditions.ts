/**
 * Conditional requests on stored objects (RFC 9110, section 13). `@agarose/core` decides them for reads, as it does for
 * every door; here they are told in words of S3.
 */
import { failedCondition, isRangeValid } from "@agarose/core/http";
import { COPY_SOURCE } from "./operations.ts";
import { S3Error } from "./s3-error.ts";

/** The facts that the conditions of a request compare. */
export interface Validators {
  /** Includes its quotes. */
  readonly etag: string;
  readonly modifiedMs: number;
  /** By which a client finds this version later. Absent where the versions of a key are not kept. */
  readonly versionId?: string | undefined;
}

type Headers = Readonly<Record<string, string | undefined>>;

/** Returns whether the answer to a GET or HEAD is 304. Throws S3Error PreconditionFailed. */
export function notModified(object: Validators, headers: Headers): boolean {
  const status = failedCondition(validatorsOf(object), { get: (name) => quoted(name, headers) });
  if (status === 412) throw failed();
  return status === 304;
}

/** Returns the Range header of a GET or HEAD, unless `If-Range` names another version. */
export function rangeAsked(object: Validators, headers: Headers): string | undefined {
  return isRangeValid(validatorsOf(object), { get: (name) => headers[name] ?? null }) ? headers["range"] : undefined;
}

/** Throws S3Error PreconditionFailed unless the object is as the headers of a copy want its source. */
export function checkCopied(object: Validators, headers: Headers): void {
  const prefix = `${COPY_SOURCE}-`;
  const conditions = Object.entries(headers).filter(([name]) => name.startsWith(prefix));
  const own = Object.fromEntries(conditions.map(([name, value]) => [name.slice(prefix.length), value]));
  if (notModified(object, own)) throw failed();
}

/** Throws S3Error PreconditionFailed when If-Match or If-None-Match does not hold for the current object. */
export function checkPut(current: Validators | undefined, headers: Headers): void {
  const ifNoneMatch = quoted("if-none-match", headers);
  if (ifNoneMatch !== null && current && names(ifNoneMatch, [current.etag, `W/${current.etag}`])) throw failed();
  const ifMatch = quoted("if-match", headers);
  if (ifMatch === null) return;
  if (!current) throw new S3Error("NoSuchKey", "The specified key does not exist.");
  if (!names(ifMatch, [current.etag])) throw failed();
}

/** The conditions of a removal, from the headers of DeleteObject or the elements of DeleteObjects. */
export interface RemovalConditions {
  readonly etag: string | undefined;
  /** Seconds count. */
  readonly modified: string | undefined;
  readonly bytes: string | undefined;
}

/**
 * Throws S3Error PreconditionFailed when the current object is not the one that a removal is bound to; InvalidArgument
 * for what is not a date or length.
 */
export function checkRemoval(current: Validators & { readonly bytes: number }, conditions: RemovalConditions): void {
  const { etag, modified, bytes } = conditions;
  if (modified !== undefined) {
    const ms = Date.parse(modified);
    if (Number.isNaN(ms)) throw new S3Error("InvalidArgument", `${modified} is not a date.`);
    if (Math.floor(ms / 1000) !== Math.floor(current.modifiedMs / 1000)) throw failed();
  }
  if (bytes !== undefined) {
    if (!/^\d+$/.test(bytes)) throw new S3Error("InvalidArgument", `${bytes} is not a length.`);
    if (Number(bytes) !== current.bytes) throw failed();
  }
  if (etag !== undefined) checkPut(current, { "if-match": etag });
}

function validatorsOf({ etag, modifiedMs }: Validators): { etag: string; "last-modified": string } {
  return { etag, "last-modified": new Date(modifiedMs).toUTCString() };
}

/** S3 takes an entity tag without its quotes too. */
function quoted(name: string, headers: Headers): string | null {
  const value = headers[name];
  if (value === undefined) return null;
  if (name !== "if-match" && name !== "if-none-match") return value;
  const tags = value.split(",").map((tag) => tag.trim());
  return tags.map((tag) => (tag === "*" || tag.includes('"') ? tag : `"${tag}"`)).join(", ");
}

function names(header: string, etags: readonly string[]): boolean {
  return header === "*" || header.split(", ").some((tag) => etags.includes(tag));
}

function failed(): S3Error {
  return new S3Error("PreconditionFailed", "At least one of the pre-conditions you specified did not hold.");
}
