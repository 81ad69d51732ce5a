/**
 * Conditional requests on stored objects (RFC 9110, section 13).
 */
import type { IncomingHttpHeaders } from "node:http";
import { S3Error } from "./s3-error.ts";

/** What the conditions of a request compare. */
export interface Validators {
  /** Includes its quotes. */
  readonly etag: string;
  readonly modifiedMs: number;
}

/** Returns whether the answer to a GET or HEAD is 304. Throws S3Error PreconditionFailed. */
export function notModified(object: Validators, headers: IncomingHttpHeaders): boolean {
  const modifiedMs = Math.floor(object.modifiedMs / 1000) * 1000;
  const ifMatch = headers["if-match"];
  if (ifMatch !== undefined ? !names(ifMatch, object) : modifiedMs > Date.parse(headers["if-unmodified-since"] ?? "")) {
    throw failed();
  }
  const ifNoneMatch = headers["if-none-match"];
  if (ifNoneMatch !== undefined) return names(ifNoneMatch, object);
  return modifiedMs <= Date.parse(headers["if-modified-since"] ?? "");
}

/** Throws S3Error PreconditionFailed when If-Match or If-None-Match does not hold for the current object. */
export function checkPut(current: Validators | undefined, headers: IncomingHttpHeaders): void {
  const ifNoneMatch = headers["if-none-match"];
  if (ifNoneMatch !== undefined && current && names(ifNoneMatch, current)) throw failed();
  const ifMatch = headers["if-match"];
  if (ifMatch === undefined) return;
  if (!current) throw new S3Error("NoSuchKey", "The specified key does not exist.");
  if (!names(ifMatch, current)) throw failed();
}

function names(header: string, object: Validators): boolean {
  if (header.trim() === "*") return true;
  const etag = object.etag.replaceAll('"', "");
  return header.split(",").some((candidate) => candidate.trim().replace(/^W\//, "").replaceAll('"', "") === etag);
}

function failed(): S3Error {
  return new S3Error("PreconditionFailed", "At least one of the pre-conditions you specified did not hold.");
}
