/** Inflates segments, by what every platform has. */
import { streamOf } from "../pull-stream.ts";
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import type { Manifest } from "../format/manifest/manifest.ts";
import type { ByteRange } from "../http/range.ts";
import { segmentsOf } from "./segments.ts";

/** Deflate makes at most 1,032 bytes of one, so that a platform that inflates all it is given makes 16 MiB of these. */
const PART_BYTES = 16 * 1024;

/** The bytes `range` of the content from `body`, the compressed bytes that `compressedRange` names. */
export function inflate(
  manifest: CompressedManifest,
  range: ByteRange,
  body: ReadableStream<Uint8Array>,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const parts = inflated(manifest, range, reader);
  const next = (): ReturnType<typeof parts.next> =>
    parts.next().catch(async (error: unknown) => {
      await reader.cancel(error).catch(() => {});
      throw error;
    });
  return streamOf<Uint8Array>(next, (reason) => reader.cancel(reason));
}

type CompressedManifest = Pick<Manifest, "key"> & Required<Pick<Manifest, "gzip">>;

async function* inflated(
  { key, gzip }: CompressedManifest,
  range: ByteRange,
  reader: ReadableStreamDefaultReader<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  const { bytes, segmentBytes, segments } = gzip;
  const { first, last } = segmentsOf(gzip, range);
  let rest: Uint8Array = new Uint8Array();
  for (let index = first; index <= last; index++) {
    const start = index * segmentBytes;
    const length = Math.min(segmentBytes, bytes - start);
    const corrupt = (found: string | false, cause?: unknown): AgaroseError =>
      new AgaroseError(
        "OBJECT_CORRUPT",
        HAS_MESSAGES &&
          `segment ${index} of ${JSON.stringify(key)} ${found}, its manifest says ${length} bytes: repeat the put`,
        { key, segment: index, expected: length },
        cause,
      );
    const { readable, writable } = new DecompressionStream("gzip");
    const writer = writable.getWriter();
    let failure: unknown;
    const feed = async (): Promise<void> => {
      try {
        for (let left = segments[index]!; left > 0;) {
          if (rest.length === 0) {
            const { done, value } = await reader.read();
            if (done) break;
            rest = value;
          }
          const part = rest.subarray(0, Math.min(left, PART_BYTES));
          rest = rest.subarray(part.length);
          left -= part.length;
          await writer.write(part as Uint8Array<ArrayBuffer>);
        }
        await writer.close();
      } catch (error) {
        failure ??= error;
        await writer.abort(error);
      }
    };
    const output = readable.getReader();
    // The output rejects with the same error.
    const fed = feed().catch(() => {});
    let at = 0;
    try {
      for (;;) {
        const { done, value } = await output.read();
        if (done) break;
        const wanted = value.subarray(Math.max(0, range.start - start - at), Math.max(0, range.end - start - at));
        at += value.length;
        if (at > length) throw corrupt(HAS_MESSAGES && `inflates to ${at} bytes and more`);
        if (wanted.length > 0) yield wanted;
      }
    } catch (error) {
      // A read that failed says why, and a platform only that its stream is damaged.
      throw (
        [failure, error].find((cause) => cause instanceof AgaroseError) ??
        corrupt(HAS_MESSAGES && "does not inflate", error)
      );
    } finally {
      output.cancel().catch(() => {});
    }
    await fed;
    if (at < length) throw corrupt(HAS_MESSAGES && `inflates to ${at} bytes`);
  }
}
