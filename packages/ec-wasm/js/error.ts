/** Codes of this package, a subset of those of `@agarose/core`, which recognises the error by its shape. */
export type CodecErrorCode = "CODE_INVALID" | "NOT_ENOUGH_SHARDS" | "SHARDS_INVALID" | "CONFIG_INVALID" | "INTERNAL";

/** The error of this package, in the shape of core's AgaroseError: this package imports nothing of ours. */
export function codecError(
  code: CodecErrorCode,
  message: string,
  details: Record<string, unknown> = {},
  cause?: unknown,
): Error {
  const error = new Error(message, cause === undefined ? undefined : { cause });
  return Object.assign(error, { name: "AgaroseError", code, details });
}
