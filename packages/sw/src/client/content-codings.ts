/**
 * Undoes the content codings of an object. Browsers do so for a response from the network, but not for one of a service
 * worker.
 */
import { AgaroseError } from "@agarose/core";
import { HAS_MESSAGES } from "@agarose/core/features";

/** The names of the Compression Streams standard. Some browsers lack `brotli` and `zstd`. */
const FORMATS: Readonly<Record<string, string>> = { br: "brotli", "x-gzip": "gzip" };

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

/** Resolves to the decoded body, once the first coded bytes are there. Coded bytes that are damaged error it. */
export async function decodedBody(
  body: ReadableStream<Uint8Array>,
  codings: readonly string[] = [],
): Promise<ReadableStream<Uint8Array>> {
  let plain = body;
  for (const coding of codings) {
    if (coding !== "deflate") plain = plain.pipeThrough(newDecoder(coding));
    else {
      const [probe, whole] = plain.tee();
      const reader = probe.getReader();
      const { value: [method = 0, flags = 0] = [] } = await reader.read();
      // It is cancelled only when the other branch is, too.
      void reader.cancel();
      // Some servers send deflate without the header of zlib, and browsers accept both.
      const isZlib = method % 16 === 8 && (method * 256 + flags) % 31 === 0;
      plain = whole.pipeThrough(newDecoder(isZlib ? coding : "deflate-raw"));
    }
  }
  return plain;
}
