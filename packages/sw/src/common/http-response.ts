/**
 * Answers as `Response`s.
 */
import { errorAnswer } from "@agarose/core";

/** The response to a read. */
export interface ReadResponse {
  readonly status: number;
  readonly headers: Record<string, string>;
  /** Null for HEAD, 304 and 412. It errors when the read cannot complete; it never ends short. */
  readonly body: ReadableStream<Uint8Array> | null;
}

/** Content codings that browsers undo for a response from the network, but not for one of a service worker. */
const DECODABLE = /^(?:x-)?(gzip|deflate)$/;

/** Returns an answer as a `Response`. A whole object that is stored compressed is decompressed, as a browser would. */
export function toResponse({ status, headers, body }: ReadResponse): Response {
  const format = DECODABLE.exec(headers["content-encoding"]?.toLowerCase() ?? "")?.[1] as CompressionFormat | undefined;
  // Part of a compressed object cannot be decompressed: as on the network, a range is one of the stored bytes.
  if (!format || status !== 200) return new Response(body, { status, headers });
  const { "content-encoding": _coding, "content-length": _length, ...rest } = headers;
  const plain = body?.pipeThrough(new DecompressionStream(format) as ReadableWritablePair<Uint8Array, Uint8Array>);
  return new Response(plain ?? null, { status, headers: rest });
}

/**
 * What a page gets for a read that failed before its first byte. (One that has aborted its read hears nothing of it.)
 */
export function errorResponse(cause: unknown): Response {
  const { status, headers, body } = errorAnswer(cause);
  return new Response(body, { status, headers });
}
