/**
 * Compresses what a put stores, where that is worth it: the passes of the put read segments of gzip instead of the
 * file, and need not know it (docs/reference/format.md, "Compression").
 */
import { createHash, type Hash } from "node:crypto";
import { promisify } from "node:util";
import { deflateRawSync, gzip as gzipOf } from "node:zlib";
import { STRIPE_BYTES_MAX, type Gzip } from "@agarose/core/format";
import type { Config } from "../config/config-schema.ts";
import { type FileHash, type SourceReader, hasChanged } from "./file-source.ts";

/** The bytes that are stored in place of a file. */
export interface CompressedSource {
  readonly file: SourceReader;
  /** Length and SHA-256 of the segments. */
  readonly hash: FileHash;
  readonly gzip: Required<Gzip>;
}

/** The inputs for the decision whether content is compressed. */
export interface CompressionWish extends Pick<Config, "compress" | "stripeBytes"> {
  readonly key: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The compressed content is at most this part of the content, or it is not compressed. */
const STORED_MAX = 0.9;
/** It saves at least so many bytes: the manifest of a compressed object is longer by nearly as many. */
const SAVED_BYTES_MIN = 512;
/** Shorter content is tried as it is. */
const SAMPLED_BYTES_MIN = 16 * 1024;
/** Of the start, the middle and the end of the content. */
const SAMPLE_BYTES = 4 * 1024;
/** A sample repeats itself less than the content does. */
const SAMPLE_STORED_MAX = 0.95;
/**
 * The first bytes of files that libraries open by small ranges: Parquet, Arrow, DuckDB, SQLite, PMTiles, FlatGeobuf,
 * TIFF, HDF5, netCDF, PDF, ZIP and RIFF. One of a few blocks would bring all of a compressed object.
 */
const READ_BY_RANGES =
  /^(?:PAR1|ARROW1|.{8}DUCK|SQLite format 3|PMTiles|II[*+]\0|MM\0[*+]|\u0089HDF|%PDF-|RIFF|(?:fgb|CDF|PK)[^ -~])/s;
const HEAD_BYTES = 16;
/** Of objects of several stripes: a small range of one needs a whole segment. */
const SEGMENT_BYTES = 1024 * 1024;
/** Their lengths are in the manifest, where they take up to 18 KiB of its 64. */
const SEGMENTS_MAX = 2 * 1024;

const compress = promisify(gzipOf);

/** Whether content of this length and with these headers is compressed if that saves enough. */
export function mayCompress({ compress: which, headers, stripeBytes }: CompressionWish, bytes: number): boolean {
  if (which === "none" || bytes <= SAVED_BYTES_MIN || bytes > SEGMENTS_MAX * STRIPE_BYTES_MAX) return false;
  // Encoded content is already compressed, as a rule.
  if (headers["content-encoding"] !== undefined) return false;
  return which === "all" || bytes <= stripeBytes;
}

/**
 * Compresses `file`, and hashes the segments. Undefined where that saves too little. `content` is what a pass over the
 * file has found.
 *
 * @throws FILE_UNREADABLE when the file is not that file any more, or the reason of an aborted `signal`.
 */
export async function compressSource(
  file: SourceReader,
  content: FileHash,
  wish: CompressionWish,
  signal: AbortSignal,
): Promise<CompressedSource | undefined> {
  const { key, stripeBytes } = wish;
  const { bytes, sha256 } = content;
  if (!mayCompress(wish, bytes) || !(await looksCompressible(file, bytes, wish))) return undefined;
  let segmentBytes = bytes <= stripeBytes ? bytes : SEGMENT_BYTES;
  while (bytes > segmentBytes * SEGMENTS_MAX) segmentBytes *= 2;
  const reader = compressingReader(file, bytes, segmentBytes, key);
  const hash = createHash("sha256");
  const plainHash = createHash("sha256");
  for (let start = 0; start < bytes; start += segmentBytes) {
    signal.throwIfAborted();
    hash.update(await reader.next(plainHash));
  }
  if (plainHash.digest("hex") !== sha256) throw hasChanged(key);
  const { segments } = reader;
  const stored = segments.reduce((sum, length) => sum + length, 0);
  if (stored > bytes * STORED_MAX || stored > bytes - SAVED_BYTES_MIN) return undefined;
  return {
    file: reader,
    hash: { bytes: stored, sha256: hash.digest("hex") },
    gzip: { bytes, sha256, segmentBytes, segments },
  };
}

/** Tries a few places of a long file, so that what does not compress costs next to nothing. */
async function looksCompressible(
  file: SourceReader,
  bytes: number,
  { compress: which }: CompressionWish,
): Promise<boolean> {
  const head = Buffer.alloc(HEAD_BYTES);
  await file.read(head, 0);
  if (which === "small" && READ_BY_RANGES.test(head.toString("latin1"))) return false;
  if (bytes < SAMPLED_BYTES_MIN) return true;
  const sample = Buffer.alloc(3 * SAMPLE_BYTES);
  for (const [i, from] of [0, Math.floor(bytes / 2), bytes - SAMPLE_BYTES].entries()) {
    await file.read(sample.subarray(i * SAMPLE_BYTES, (i + 1) * SAMPLE_BYTES), from);
  }
  return deflateRawSync(sample, { level: 1 }).length <= sample.length * SAMPLE_STORED_MAX;
}

/**
 * Reads the segments of a file. It keeps the last one and compresses others again: of equal bytes, one program makes
 * equal segments. An upload checks the SHA-256 of what it reads.
 */
function compressingReader(file: SourceReader, bytes: number, segmentBytes: number, key: string) {
  const segments: number[] = [];
  let last: { readonly index: number; readonly stored: Uint8Array } | undefined;

  const contentOf = async (index: number): Promise<Uint8Array> => {
    const start = index * segmentBytes;
    const content = Buffer.allocUnsafe(Math.min(segmentBytes, bytes - start));
    if ((await file.read(content, start)) < content.length) throw hasChanged(key);
    return content;
  };

  const storedOf = async (index: number): Promise<Uint8Array> => {
    if (last?.index === index) return last.stored;
    const stored = await compress(await contentOf(index));
    if (stored.length !== segments[index]) throw hasChanged(key);
    last = { index, stored };
    return stored;
  };

  return {
    /** Their lengths, once the first pass has compressed them. */
    segments,

    /** Compresses the next segment of the first pass. `hash` gets the content. */
    async next(hash: Hash): Promise<Uint8Array> {
      const index = segments.length;
      const content = await contentOf(index);
      hash.update(content);
      const stored = await compress(content);
      segments.push(stored.length);
      last = { index, stored };
      return stored;
    },

    async read(target: Uint8Array, position: number): Promise<number> {
      let filled = 0;
      let start = 0;
      for (const [index, length] of segments.entries()) {
        const from = position + filled - start;
        if (from < length && filled < target.length) {
          const part = (await storedOf(index)).subarray(from, from + target.length - filled);
          target.set(part, filled);
          filled += part.length;
        }
        start += length;
      }
      return filled;
    },
    close: () => file.close(),
  };
}
