/** Says in words of S3 why a library function failed. */
import { S3Error, type S3ErrorCode } from "@agarose/s3-server";
import { AgaroseError, toAgaroseError, type ErrorCode } from "@agarose/core";

const CODES: Partial<Record<ErrorCode, S3ErrorCode>> = {
  OBJECT_NOT_FOUND: "NoSuchKey",
  KEY_INVALID: "InvalidArgument",
  USAGE: "InvalidArgument",
  KEY_TOO_LONG: "KeyTooLongError",
  RANGE_UNSATISFIABLE: "InvalidRange",
  REPLACED_MEANWHILE: "OperationAborted",
  // A client repeats what failed with 503, and each of these may pass.
  ABORTED: "ServiceUnavailable",
  DISK_FULL: "ServiceUnavailable",
  BUSY: "ServiceUnavailable",
  // A region refused the keys of the gateway. The client's own were right, so this is no AccessDenied.
  CREDENTIALS_REFUSED: "ServiceUnavailable",
  NO_QUORUM: "ServiceUnavailable",
  NO_SOURCE: "ServiceUnavailable",
  // As in a rotation, until this machine has the new configuration.
  KEYS_OUTDATED: "ServiceUnavailable",
  MANIFEST_UNTRUSTED: "ServiceUnavailable",
  REGION_MISPLACED: "ServiceUnavailable",
  NOT_ENOUGH_CHUNKS: "ServiceUnavailable",
  // The origin does not answer, so it may have the key.
  SOURCE_FAILED: "ServiceUnavailable",
  READ_TIMEOUT: "ServiceUnavailable",
  READ_UNCERTAIN: "ServiceUnavailable",
  STORE_FAILED: "ServiceUnavailable",
  WRITE_UNCERTAIN: "ServiceUnavailable",
};

/** Codes for an object that a client sends, and for a manifest that a region holds. */
const TOO_LARGE: ReadonlySet<ErrorCode> = new Set(["CODE_INVALID", "MANIFEST_TOO_LARGE"]);

/**
 * Returns the S3Error of `cause`. Its message has our own code, which `reference/errors.md` explains.
 *
 * @param isRead whether the client has sent no object.
 */
export function s3ErrorOf(cause: unknown, isRead = false): S3Error {
  if (cause instanceof S3Error) return cause;
  const { code, message, details } = cause instanceof AgaroseError ? cause : toAgaroseError(cause);
  // No client retries what is too large, and a region's manifest may be right the next time.
  const isTooLarge = TOO_LARGE.has(code) && "max" in details && !isRead;
  return new S3Error(isTooLarge ? "EntityTooLarge" : (CODES[code] ?? "InternalError"), `${code}: ${message}`);
}

/** Whether no object can have this key, so that it is as absent as any other. */
export function isImpossibleKey(cause: unknown): boolean {
  return cause instanceof AgaroseError && (cause.code === "KEY_INVALID" || cause.code === "KEY_TOO_LONG");
}
