/**
 * Undoes the content codings of an object. Browsers do so for a response from the network, but not for one of a service
 * worker.
 */
import { AgaroseError } from "@agarose/core";
import { HAS_MESSAGES } from "@agarose/core/features";

/**
 * The names of the Compression Streams standard. Some browsers lack `brotli` and `zstd`. It has two names for deflate,
 * with the header of zlib and without, and only the network takes both.
 */
const FORMATS: Readonly<Record<string, string>> = { br: "brotli", "x-gzip": "gzip", deflate: "" };

type Decoding = ReadableWritablePair<Uint8Array, Uint8Array>;

/**
 * Returns a stream that undoes `coding`.
 *
 * @throws CODING_UNSUPPORTED where the browser has none.
 */
export function newDecoder(coding: string): Decoding {
  try {
    return new DecompressionStream((FORMATS[coding] ?? coding) as CompressionFormat) as Decoding;
  } catch (error) {
    const message = HAS_MESSAGES && `this browser's worker cannot undo the content coding ${coding}: configure a PoP`;
    throw new AgaroseError("CODING_UNSUPPORTED", message, { coding }, error);
  }
}

/** Returns the decoded body. Coded bytes that are damaged error it. */
export function decodedBody(
  body: ReadableStream<Uint8Array>,
  codings: readonly string[] = [],
): ReadableStream<Uint8Array> {
  return codings.reduce((coded, coding) => coded.pipeThrough(newDecoder(coding)), body);
}
