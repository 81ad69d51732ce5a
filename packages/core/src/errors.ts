/**
 * The one error class of Agarose, with one code per cause, and the catalogue of all codes.
 *
 * A message carries both numbers (what was needed, what was there) and what to do next. `details` carries the same
 * facts for programs. HTTP responses and exit codes are derived from the code only.
 */

/** False in a build whose errors carry codes and details only; not defined in any other. */
declare const AGAROSE_MESSAGES: boolean | undefined;

/**
 * Whether errors of this build carry messages. Code that runs in the service worker writes ``HAS_MESSAGES && `…` ``.
 * A bundler that defines `AGAROSE_MESSAGES` as `false` drops the text; an error's message then is its code.
 */
export const HAS_MESSAGES: boolean = typeof AGAROSE_MESSAGES === "undefined" || AGAROSE_MESSAGES;

/** The meaning of an error code. */
export interface ErrorDescription {
  /** The event, in one sentence. */
  readonly meaning: string;
  /** The fix, in one sentence. */
  readonly remedy: string;
}

/** Every code with its meaning and its remedy. `docs/reference/errors.md` is generated from it. */
export const ERROR_CATALOGUE = {
  KEY_INVALID: {
    meaning:
      "The key breaks a rule: it is empty, `.` or `..`, or has a NUL or a lone surrogate. Of a sync to a folder: no file can have this name.",
    remedy: "Correct the key.",
  },
  KEY_TOO_LONG: {
    meaning: "The name of the key in a bucket is longer than 960 bytes.",
    remedy: "Use a shorter key.",
  },
  REQUEST_INVALID: {
    meaning: "A request to the edge is malformed.",
    remedy: "Correct the field that the message names.",
  },
  FORBIDDEN: {
    meaning: "The route needs a token or a signature, and the request has none or a wrong one.",
    remedy: "Send a valid token, or a URL that is signed and not expired.",
  },
  OBJECT_NOT_FOUND: {
    meaning: "Most regions answer that they hold no manifest for the key.",
    remedy: "Check the key with `agarose ls`, and the buckets' permissions with `agarose doctor`.",
  },
  OBJECT_PLAIN: {
    meaning: "The regions do not know the key, and the origin has it as a plain object, which has no chunks.",
    remedy: "Read it by `/o/`, as the service worker does by itself.",
  },
  OBJECT_TOO_LARGE: {
    meaning: "The whole object needs more requests than one invocation of the edge may make.",
    remedy: "Read it with the service worker, or request ranges of it.",
  },
  UPLOAD_REFUSED: {
    meaning:
      "An upload from a page is too long, has expired, or is of an object that the page cannot store as configured.",
    remedy: "Begin a new upload within the bounds that the message names.",
  },
  RANGE_UNSATISFIABLE: {
    meaning: "The Range header names no byte of the object.",
    remedy: "Request a range below the length in Content-Range.",
  },
  ABORTED: {
    meaning: "The caller aborted.",
    remedy: "No action is needed.",
  },
  INTERNAL: {
    meaning: "Agarose has a defect.",
    remedy: "Report it with the message and the details.",
  },
  CONFIG_INVALID: {
    meaning: "A configuration file, a variable, a secret or an option is wrong.",
    remedy: "Correct the field that the message names.",
  },
  MANIFEST_INVALID: {
    meaning: "The manifest is damaged, contradicts itself or is not JSON.",
    remedy: "Run `agarose verify`, then `agarose repair`.",
  },
  MANIFEST_TOO_LARGE: {
    meaning: "The manifest is larger than 64 KiB.",
    remedy: "Put the object with fewer or shorter headers.",
  },
  MANIFEST_UNTRUSTED: {
    meaning: "The manifest is not signed by a publisher that the configuration trusts.",
    remedy: "Check the configured public keys, and who can write to the region.",
  },
  MANIFEST_STALE: {
    meaning: "The manifest is older than one that this reader has seen before.",
    remedy: "Run `agarose repair` to update the region.",
  },
  SIGNATURE_UNSUPPORTED: {
    meaning: "This runtime cannot check Ed25519 signatures.",
    remedy: "Read through a PoP, or update the browser.",
  },
  CODING_INVALID: {
    meaning: "The bytes of a file do not match the content coding in its headers.",
    remedy: "Compress the file in one stream, or omit content-encoding.",
  },
  CODING_UNSUPPORTED: {
    meaning: "This browser's worker cannot decode the content coding of the object.",
    remedy: "Configure a PoP to read it through, or store the object with gzip.",
  },
  MANIFEST_NEWER: {
    meaning: "The manifest has a newer format, or requires a feature, that this program does not know.",
    remedy: "Upgrade Agarose.",
  },
  REGION_UNKNOWN: {
    meaning: "Fewer than k chunks are in configured regions.",
    remedy: "Configure the missing regions; `verify` and `repair` need all of them.",
  },
  CODE_INVALID: {
    meaning: "k, m or the stripe size is out of range.",
    remedy: "Use k >= 1, m >= 0, 2k + m <= 256 and stripes of 1 byte to 16 MiB.",
  },
  NOT_ENOUGH_CHUNKS: {
    meaning: "All configured sources together deliver fewer than k chunks of a stripe.",
    remedy: "Retry once the regions answer, or configure the missing ones.",
  },
  NOT_ENOUGH_SHARDS: {
    meaning: "The codec got fewer than k shards.",
    remedy: "Pass at least k distinct shards.",
  },
  SHARDS_INVALID: {
    meaning: "Shards of one stripe differ in length, or an index is repeated or out of range.",
    remedy: "Pass distinct shards of equal length.",
  },
  CHUNK_CORRUPT: {
    meaning: "The SHA-256 of a chunk differs from the one in its manifest.",
    remedy: "The read uses a different source by itself; run `agarose repair` to fix the bucket.",
  },
  CHUNK_WRONG_LENGTH: {
    meaning: "A source sent a number of bytes that differs from the manifest.",
    remedy: "The read uses a different source by itself; run `agarose repair` to fix the bucket.",
  },
  CHUNK_MISSING: {
    meaning: "A source does not have the chunk.",
    remedy: "The read uses a different source by itself; run `agarose repair` to fix the bucket.",
  },
  SOURCE_FAILED: {
    meaning: "A source responded with an error status, or not at all.",
    remedy: "The read uses a different source by itself; otherwise retry.",
  },
  OBJECT_CORRUPT: {
    meaning: "The SHA-256 or the length of the decoded object differs from its manifest.",
    remedy: "Run `agarose verify`, then replace the object.",
  },
  SECRET_MISSING: {
    meaning: "The object is encrypted, and the reader has no secret for its prefix.",
    remedy: "Configure the secret that the message names, or read through a PoP that has it.",
  },
  SECRET_WRONG: {
    meaning: "The object is encrypted with a different secret from the reader's, which is wrong or was replaced.",
    remedy: "Add the secret that the message names, or finish its replacement: `agarose keys apply`.",
  },
  DECRYPTION_FAILED: {
    meaning: "The stored bytes do not decrypt: they were changed, or belong to a different object.",
    remedy: "Check who can write to the buckets, then replace the object.",
  },
  BUNDLE_INVALID: {
    meaning: "A PoP's bundle is malformed or ends early.",
    remedy: "No action is needed: the read uses other sources.",
  },
  NO_SOURCE: {
    meaning: "No PoP and no bucket delivers a usable manifest.",
    remedy: "Retry once they answer.",
  },
  BUSY: {
    meaning: "Another request is doing the same work, or memory is short.",
    remedy: "Retry later.",
  },
  RATE_LIMITED: {
    meaning: "The client has requested too many keys that do not exist, or guessed too many tokens.",
    remedy: "Retry in a minute.",
  },
  READ_TIMEOUT: {
    meaning: "No source of a stripe sent anything for 30 seconds, or a different step was too slow.",
    remedy: "Retry, or allow more time.",
  },
  USAGE: {
    meaning: "The command line is wrong.",
    remedy: "See `agarose COMMAND --help`.",
  },
  LAYOUT_UNSAFE: {
    meaning: "The layout survives fewer losses than the configuration promises.",
    remedy: "Use more parity, more regions or more providers, or promise less.",
  },
  CREDENTIALS_REFUSED: {
    meaning: "The store refused the credentials, or there are none.",
    remedy: "Set credentials that may read and write the bucket.",
  },
  STORE_FAILED: {
    meaning: "The store refused a write, or does not respond.",
    remedy: "Run the command again once the store responds.",
  },
  NO_QUORUM: {
    meaning:
      "Fewer than a majority of the regions answer, so a command wrote nothing that readers see, or cannot know the " +
      "newest version.",
    remedy:
      "Run the command again once they answer; `agarose doctor` lists those that do not. `--consistency eventual` reads " +
      "the first sound copy.",
  },
  READ_UNCERTAIN: {
    meaning:
      "The newest version is in too few of the regions that respond, so nobody can know whether it was acknowledged.",
    remedy: "Retry once the other regions answer, run `agarose repair`, or read with `--consistency eventual`.",
  },
  REPLACED_MEANWHILE: {
    meaning: "Another writer stored a newer version of the object at the same time.",
    remedy: "Run the command again if its version must win.",
  },
  WRITE_UNCERTAIN: {
    meaning:
      "A write reached too few regions and could not be undone in all of them, so readers may see either version.",
    remedy: "Run the command again once the regions answer.",
  },
  KEYS_OUTDATED: {
    meaning: "This machine writes with a key or a secret that a rotation has replaced.",
    remedy: "Give it the configuration that `agarose keys` wrote last.",
  },
  REGION_MISPLACED: {
    meaning: "A bucket belongs to a different region or deployment, or two regions share one bucket.",
    remedy: "Correct `endpoint` and `bucket` of the region that the message names.",
  },
  CLOCKS_DISAGREE: {
    meaning: "The clocks of the regions and of this machine differ by more than five minutes.",
    remedy: "Set the clock that the message names, then repeat the command.",
  },
  INVENTORY_INVALID: {
    meaning: "An S3 Inventory is incomplete, damaged, too old, or of a different bucket or format.",
    remedy: "Follow the message, or omit `--inventory`, so that the region is listed.",
  },
  FILE_UNREADABLE: {
    meaning: "A file cannot be read, or changed while it was read.",
    remedy: "Check the path and its permissions.",
  },
  DISK_FULL: {
    meaning: "The disk, a quota or a file size limit has no room for a file.",
    remedy: "Free space, raise the limit, or write to a different disk.",
  },
  KNAPSACK_INVALID: {
    meaning: "A knapsack instance has a weight, value or capacity that is out of range.",
    remedy: "Correct the field that the message names.",
  },
  SCENARIO_INVALID: {
    meaning: "A scenario, a trace or a log line is malformed.",
    remedy: "Correct the field or line that the message names.",
  },
  SNAPSHOT_INVALID: {
    meaning: "The saved state of a cache policy is malformed, or belongs to a different policy.",
    remedy: "Start the policy without it.",
  },
} as const satisfies Record<string, ErrorDescription>;

/** Why something failed: a key of `ERROR_CATALOGUE`. */
export type ErrorCode = keyof typeof ERROR_CATALOGUE;

/** Codes that only programs report (the command line, the simulator): no HTTP response has them. */
export const PROGRAM_CODES = [
  "USAGE",
  "LAYOUT_UNSAFE",
  "CREDENTIALS_REFUSED",
  "STORE_FAILED",
  "NO_QUORUM",
  "READ_UNCERTAIN",
  "REPLACED_MEANWHILE",
  "WRITE_UNCERTAIN",
  "KEYS_OUTDATED",
  "REGION_MISPLACED",
  "CLOCKS_DISAGREE",
  "INVENTORY_INVALID",
  "FILE_UNREADABLE",
  "CODING_INVALID",
  "DISK_FULL",
  "KNAPSACK_INVALID",
  "SCENARIO_INVALID",
  "SNAPSHOT_INVALID",
] as const satisfies readonly ErrorCode[];

/** The HTTP statuses other than 502, which a fault of a source behind us has. */
const HTTP_STATUS: Partial<Record<ErrorCode, number>> = {
  KEY_INVALID: 400,
  KEY_TOO_LONG: 400,
  REQUEST_INVALID: 400,
  FORBIDDEN: 403,
  OBJECT_NOT_FOUND: 404,
  OBJECT_PLAIN: 404,
  OBJECT_TOO_LARGE: 413,
  UPLOAD_REFUSED: 403,
  RANGE_UNSATISFIABLE: 416,
  RATE_LIMITED: 429,
  ABORTED: 499,
  INTERNAL: 500,
  CONFIG_INVALID: 500,
  BUSY: 503,
  READ_TIMEOUT: 504,
};

/** A failure with a code for programs and a sentence for people. */
export class AgaroseError extends Error {
  override readonly name = "AgaroseError";
  declare readonly code: ErrorCode;
  declare readonly details: Readonly<Record<string, unknown>>;

  /**
   * @param message both numbers and what to do next. Without one (`false`, undefined or empty), the code is the
   *   message.
   * @param details the facts of the message, for programs: JSON values.
   * @param cause the failure behind this one.
   */
  constructor(
    code: ErrorCode,
    message: string | false | undefined,
    details: Record<string, unknown> = {},
    cause?: unknown,
  ) {
    super(message || code, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
  }

  /** The status of an HTTP response that reports this error; 502 for a code of a newer source. */
  get httpStatus(): number {
    return HTTP_STATUS[this.code] ?? 502;
  }

  toJSON(): { code: ErrorCode; message: string; details: Readonly<Record<string, unknown>> } {
    return { code: this.code, message: this.message, details: this.details };
  }
}

/** Meaning and remedy of `code` in two sentences: the words for an error of a build that has none. */
export function explainError(code: ErrorCode): string {
  const { meaning, remedy } = ERROR_CATALOGUE[code];
  return `${meaning} ${remedy}`;
}

/**
 * Returns `error` itself when it is an AgaroseError, and wraps everything else: an abort as ABORTED, a time-out as
 * READ_TIMEOUT, the rest as `fallback`. Packages that do not import this one throw errors of the same name and fields,
 * and a bundle may hold this class twice: those keep their code, message and details.
 */
export function toAgaroseError(error: unknown, fallback: ErrorCode = "INTERNAL"): AgaroseError {
  if (error instanceof AgaroseError) return error;
  const { name, message = String(error), code, details } = Object(error) as Partial<AgaroseError>;
  const codes: Record<string, ErrorCode | undefined> = {
    AgaroseError: code,
    AbortError: "ABORTED",
    TimeoutError: "READ_TIMEOUT",
  };
  return new AgaroseError(codes[name!] ?? fallback, message, details, error);
}

/** Whether a read failed because chunks are gone: its manifest names a version that was replaced. */
export function isOutdated(error: unknown): boolean {
  const { code, details } = toAgaroseError(error);
  const failures = (details["failures"] ?? []) as readonly { readonly code: string }[];
  return code === "NOT_ENOUGH_CHUNKS" && failures.some((failure) => failure.code === "CHUNK_MISSING");
}
