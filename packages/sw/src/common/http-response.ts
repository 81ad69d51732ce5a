/** Answers as `Response`s. */
import { errorAnswer } from "@agarose/core/http";

/** The response to a read. */
export interface ReadResponse {
  readonly status: number;
  readonly headers: Record<string, string>;
  /** Null for HEAD, 304 and 412. It errors when the read cannot complete; it never ends short. */
  readonly body: ReadableStream<Uint8Array> | null;
}

/** Returns an answer as a `Response`. */
export function toResponse({ status, headers, body }: ReadResponse | ReturnType<typeof errorAnswer>): Response {
  return new Response(body, { status, headers });
}

/** The response to a read that failed before its first byte. A page that has aborted its read gets none. */
export function errorResponse(cause: unknown): Response {
  return toResponse(errorAnswer(cause));
}
