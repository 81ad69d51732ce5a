/**
 * The one error class of Agarose, with one code per cause.
 *
 * A message carries both numbers (what was needed, what was there) and what to do next; `details` carries the same
 * facts for programs. HTTP answers and exit codes are derived from the code alone (`httpStatus`).
 */

/** Why something failed. The comment of each code says whose mistake it is and what to do. */
export type ErrorCode =
  /** The key breaks a rule of `parseKey` (empty, `..`, lone surrogate, …). The caller's mistake. */
  | "KEY_INVALID"
  /** The encoded key does not fit in 1,024 bytes. The caller's mistake: use a shorter key. */
  | "KEY_TOO_LONG"
  /** No region holds a manifest for the key. */
  | "OBJECT_NOT_FOUND"
  /** The manifest is not JSON of format 1, or contradicts itself. Run `agarose verify`. */
  | "MANIFEST_INVALID"
  /** The manifest is larger than `MANIFEST_BYTES_MAX`. Use larger stripes. */
  | "MANIFEST_TOO_LARGE"
  /** The manifest's format is newer than this program reads. Upgrade. */
  | "MANIFEST_NEWER"
  /** The manifest names a region which the configuration does not have. */
  | "REGION_UNKNOWN"
  /** k, m or stripeBytes out of range. */
  | "CODE_INVALID"
  /** The layout does not survive what the configuration promises. */
  | "LAYOUT_UNSAFE"
  /** The configuration file or binding is wrong. */
  | "CONFIG_INVALID"
  /** The command line is wrong. */
  | "USAGE"
  /** Fewer than k chunks of a stripe could be had from all sources. */
  | "NOT_ENOUGH_CHUNKS"
  /** The codec was given fewer than k shards. A programmer's mistake. */
  | "NOT_ENOUGH_SHARDS"
  /** Shards of one stripe differ in length, or an index is doubled or out of range. A programmer's mistake. */
  | "SHARDS_INVALID"
  /** A chunk's SHA-256 is not the manifest's. The source is corrupt; another one is tried. */
  | "CHUNK_CORRUPT"
  /** A source answered with another number of bytes than asked for. Another one is tried. */
  | "CHUNK_WRONG_LENGTH"
  /** A source does not have the chunk (404, or an edge miss). Another one is tried. */
  | "CHUNK_MISSING"
  /** A source answered with an error status, or not at all. Another one is tried. */
  | "SOURCE_FAILED"
  /** The object's decoded bytes do not have the manifest's SHA-256. */
  | "OBJECT_CORRUPT"
  /** The read did not finish within its deadline. */
  | "READ_TIMEOUT"
  /** The Range header cannot be met (HTTP 416). */
  | "RANGE_UNSATISFIABLE"
  /** A bundle's frames are malformed or end early. The chunks come from elsewhere. */
  | "BUNDLE_INVALID"
  /** Every PoP and every bucket refused: there is no manifest to read by. */
  | "NO_SOURCE"
  /** The whole object takes more requests than one invocation of the edge may make. Ask for ranges of it. */
  | "OBJECT_TOO_LARGE"
  /** The caller aborted. */
  | "ABORTED"
  /** Credentials are missing or were refused by the store. */
  | "CREDENTIALS_REFUSED"
  /** The store refused a write, or is unreachable. */
  | "STORE_FAILED"
  /** A file to put cannot be read, or changed while it was read. */
  | "FILE_UNREADABLE"
  /** A knapsack instance is malformed (NaN, negative, weight 0, capacity out of range). */
  | "KNAPSACK_INVALID"
  /** A scenario, trace or log line is malformed. */
  | "SCENARIO_INVALID"
  /** What a cache policy left behind is malformed, or another policy's. Let it start anew. */
  | "SNAPSHOT_INVALID"
  /** A request to the edge is malformed. */
  | "REQUEST_INVALID"
  /** The route needs a token that was not given or is wrong. */
  | "FORBIDDEN"
  /** Something else is at work on the same thing. Try again later. */
  | "BUSY"
  /** A defect of ours. Please report it. */
  | "INTERNAL";

const HTTP_STATUS: Partial<Record<ErrorCode, number>> = {
  KEY_INVALID: 400,
  KEY_TOO_LONG: 400,
  REQUEST_INVALID: 400,
  FORBIDDEN: 403,
  OBJECT_NOT_FOUND: 404,
  OBJECT_TOO_LARGE: 413,
  RANGE_UNSATISFIABLE: 416,
  ABORTED: 499,
  INTERNAL: 500,
  CONFIG_INVALID: 500,
  BUSY: 503,
  READ_TIMEOUT: 504,
};

/** False in a build whose errors carry codes and details only; not defined in any other. */
declare const AGAROSE_MESSAGES: boolean | undefined;

/** Whether this build has error messages. Write `HAS_MESSAGES && "…"`: a build without messages drops the text. */
export const HAS_MESSAGES: boolean = typeof AGAROSE_MESSAGES === "undefined" || AGAROSE_MESSAGES;

/** A failure with a code for programs and a sentence for people. Without a message, the code takes its place. */
export class AgaroseError extends Error {
  override readonly name = "AgaroseError";
  declare readonly code: ErrorCode;
  declare readonly details: Readonly<Record<string, unknown>>;

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

  /** The status of an HTTP answer that reports this error: a fault of a source behind us is 502. */
  get httpStatus(): number {
    return HTTP_STATUS[this.code] ?? 502;
  }

  toJSON(): { code: ErrorCode; message: string; details: Readonly<Record<string, unknown>> } {
    return { code: this.code, message: this.message, details: this.details };
  }
}

/**
 * Returns `error` itself when it is one of ours, and wraps anything else: aborts as ABORTED, the rest as `fallback`. Packages that
 * do not import this one throw errors of the same name and fields, and a bundle may hold this class twice: those keep theirs.
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
