/** Says in words of S3 why a library function failed. */
import { S3Error, type S3ErrorCode } from "@agarose/dev-world/s3-wire";
import { AgaroseError, toAgaroseError, type ErrorCode } from "@agarose/core";

const CODES: Partial<Record<ErrorCode, S3ErrorCode>> = {
  OBJECT_NOT_FOUND: "NoSuchKey",
  KEY_INVALID: "InvalidArgument",
  USAGE: "InvalidArgument",
  KEY_TOO_LONG: "KeyTooLongError",
  RANGE_UNSATISFIABLE: "InvalidRange",
  CODE_INVALID: "EntityTooLarge",
  MANIFEST_TOO_LARGE: "EntityTooLarge",
  REPLACED_MEANWHILE: "OperationAborted",
  // A client repeats what failed with 503, and each of these may pass.
  ABORTED: "ServiceUnavailable",
  DISK_FULL: "ServiceUnavailable",
  BUSY: "ServiceUnavailable",
  NO_QUORUM: "ServiceUnavailable",
  NO_SOURCE: "ServiceUnavailable",
  // As in a rotation, until this machine has the new configuration.
  KEYS_OUTDATED: "ServiceUnavailable",
  MANIFEST_UNTRUSTED: "ServiceUnavailable",
  REGION_MISPLACED: "ServiceUnavailable",
  NOT_ENOUGH_CHUNKS: "ServiceUnavailable",
  READ_TIMEOUT: "ServiceUnavailable",
  READ_UNCERTAIN: "ServiceUnavailable",
  STORE_FAILED: "ServiceUnavailable",
  WRITE_UNCERTAIN: "ServiceUnavailable",
};

/** Returns the S3Error of `cause`. Its message has our own code, which `reference/errors.md` explains. */
export function s3ErrorOf(cause: unknown): S3Error {
  if (cause instanceof S3Error) return cause;
  const { code, message } = cause instanceof AgaroseError ? cause : toAgaroseError(cause);
  return new S3Error(CODES[code] ?? "InternalError", `${code}: ${message}`);
}

/** Whether no object can have this key, so that it is as absent as any other. */
export function isImpossibleKey(cause: unknown): boolean {
  return cause instanceof AgaroseError && (cause.code === "KEY_INVALID" || cause.code === "KEY_TOO_LONG");
}
