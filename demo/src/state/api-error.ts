/** Errors of the HTTP API: `{"error": {"code", "message", "details"}}`. */
import { ERROR_CATALOGUE, type ErrorCode } from "@agarose/core";

/** An error answer. Its message is a sentence for people. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Returns the error in the body of `response`, or one made of its status. */
export async function apiError(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string; details?: ErrorDetails } };
    // The published service worker has no messages: there, the message is the code.
    const hasMessage = error.message !== "" && error.message !== error.code;
    return new ApiError(error.code, hasMessage ? error.message : describeError(error.code, error.details));
  } catch {
    return new ApiError(`HTTP_${response.status}`, text.slice(0, 200) || response.statusText);
  }
}

/** The facts of an error that the page shows. */
export interface ErrorDetails {
  readonly needed?: number;
  readonly available?: number;
}

/** Returns what an error code means, with its numbers, and what to do. Returns nothing for an unknown code. */
export function describeError(code: string, { needed, available }: ErrorDetails = {}): string {
  if (!Object.hasOwn(ERROR_CATALOGUE, code)) return "";
  const { meaning, remedy } = ERROR_CATALOGUE[code as ErrorCode];
  if (needed === undefined || available === undefined) return `${meaning} ${remedy}`;
  return `${needed} chunks are needed and ${available} are available. ${remedy}`;
}
