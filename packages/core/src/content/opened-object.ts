/** Opens the content of an object by decryption, inflation, or both. */
import type { Manifest } from "../format/manifest/manifest.ts";
import type { ByteRange } from "../http/range.ts";

/** An object whose stored bytes are not its content. */
export interface OpenedObject {
  /** The manifest as if the content were stored as it is: with its length, type, headers and SHA-256. */
  readonly shown: Manifest;
  /** Which stored bytes to read for a range of the content. */
  stored(range: ByteRange): ByteRange;
  /** The bytes `range` of the content from `body`, the stored bytes that `stored` names. */
  content(range: ByteRange, body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array>;
}
