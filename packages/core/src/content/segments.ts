/**
 * Segments: how the content of a compressed object is cut (docs/reference/format.md, "Compression").
 *
 * Each is compressed on its own, and they are stored one behind the other. Stripes, chunks and hashes are those of the
 * stored bytes, so that nothing below a reader's surface knows of segments.
 */
import type { Gzip } from "../format/manifest/manifest.ts";
import type { ByteRange } from "../http/range.ts";

/** The segments first to last (inclusive) that a range of the content lies in. It has no byte only in an empty one. */
export function segmentsOf({ segmentBytes }: Gzip, { start, end }: ByteRange): { first: number; last: number } {
  return { first: Math.floor(start / segmentBytes), last: Math.floor((Math.max(end, start + 1) - 1) / segmentBytes) };
}

/** The compressed bytes that a range of the content needs: whole segments. */
export function compressedRange(gzip: Gzip, range: ByteRange): ByteRange {
  const { first, last } = segmentsOf(gzip, range);
  const start = sum(gzip.segments.slice(0, first));
  return { start, end: start + sum(gzip.segments.slice(first, last + 1)) };
}

function sum(lengths: readonly number[]): number {
  return lengths.reduce((total, length) => total + length, 0);
}
