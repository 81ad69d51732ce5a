/**
 * Pieces: the blocks that a small range lies in. A read of pieces asks for them only, and not for k chunks of whole
 * stripes. Reed-Solomon codes each byte position on its own, so the same blocks of any k chunks give a piece too.
 */
import { stripeShape, type Manifest, type StripePart, type StripeShape } from "../format/manifest/index.ts";
import { blockCount } from "../format/manifest/stripe-shape.ts";
import type { ByteRange } from "../http/range.ts";

/** The blocks of one data chunk in one stripe. */
export interface Piece {
  readonly stripe: StripePart;
  /** Length of each block; the last one of a shard is shorter. */
  readonly blockBytes: number;
  /** The data chunk that has them. */
  readonly chunk: number;
  /** Where they begin in the object. */
  readonly start: number;
  /** Where the range ends within the stripe, in the object. Padding may follow. */
  readonly end: number;
}

/**
 * A range of at most so many bytes is brief: a PoP that is asked for it sends all of its pieces. It asks the bucket as
 * soon as the client could, over a connection that is open, and knows which regions are down.
 */
export const BRIEF_BYTES_MAX = 128 * 1024;

/** The most bytes of a small object. */
export const SMALL_BYTES_MAX = 128 * 1024;

/** A read of pieces saves at least this factor of bytes, or it reads whole stripes. */
const SAVING_MIN = 2;

/**
 * Returns the pieces of `range` in order; undefined where reading whole stripes is better. A piece is whole blocks, or
 * a whole shard when the object has no leaf list.
 */
export function piecesOf(manifest: Manifest, range: ByteRange): Piece[] | undefined {
  const { stripeBytes, k, inline } = manifest;
  if (inline !== undefined) return undefined;
  const pieces: Piece[] = [];
  let allBytes = 0;
  let bytes = 0;
  for (let index = Math.floor(range.start / stripeBytes); index * stripeBytes < range.end; index++) {
    const stripe = stripeShape(manifest, index);
    allBytes += k * stripe.shardBytes;
    for (const piece of piecesIn(manifest, stripe, range)) {
      pieces.push(piece);
      bytes += piece.stripe.shardBytes;
    }
    // A long read ends here, after few stripes: it wants almost all of them.
    if (bytes * SAVING_MIN > allBytes && index * stripeBytes > range.start) return undefined;
  }
  return bytes * SAVING_MIN > allBytes ? undefined : pieces;
}

/** The pieces of one stripe in which `range` lies, in order, a chunk each. */
export function* piecesIn(manifest: Manifest, stripe: StripeShape, range: ByteRange): Generator<Piece> {
  const { start, shardBytes, dataBytes, chunkOffset } = stripe;
  const blockBytes = manifest.leaves ? manifest.blockBytes : shardBytes;
  const end = Math.min(range.end, start + dataBytes) - start;
  let at = Math.max(range.start - start, 0);
  while (at < end) {
    const chunk = Math.floor(at / shardBytes);
    const shardStart = chunk * shardBytes;
    const from = Math.floor((at - shardStart) / blockBytes) * blockBytes;
    const to = Math.min(Math.ceil(Math.min(end - shardStart, shardBytes) / blockBytes) * blockBytes, shardBytes);
    const part = { ...stripe, chunkOffset: chunkOffset + from, shardBytes: to - from, from };
    yield { stripe: part, blockBytes, chunk, start: start + shardStart + from, end: start + end };
    at = shardStart + shardBytes;
  }
}

/** Whether an object is small: one stripe, which batches bring and memories keep whole. An inline one has no chunks. */
export function isSmall({ bytes, stripeBytes, inline }: Manifest): boolean {
  return bytes <= Math.min(SMALL_BYTES_MAX, stripeBytes) && inline === undefined;
}

/** The name of a small object as a whole, with its padding. No other object has it. */
export function wholeName({ version }: Pick<Manifest, "version">): string {
  return `${version}/whole`;
}

/** A name for each block of a piece, unique among the blocks of all objects. */
export function blockNames({ version }: Pick<Manifest, "version">, { stripe, blockBytes, chunk }: Piece): string[] {
  const names: string[] = [];
  for (let at = 0; at < stripe.shardBytes; at += blockBytes) {
    names.push(`${version}/${stripe.index}/${chunk}/${stripe.from + at}/${blockBytes}`);
  }
  return names;
}

/** Whether the blocks of a piece have hashes of their own, in the leaf list; else its hash is in the manifest. */
export function needsLeaves(manifest: Manifest, { stripe }: Piece): boolean {
  return manifest.leaves !== undefined && blockCount(manifest, stripeShape(manifest, stripe.index)) > 1;
}
