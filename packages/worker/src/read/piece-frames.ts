/**
 * The frames of a bundle for a small range: the leaves of its stripes, and the blocks that the PoP has or can decode
 * (docs/reference/format.md, "Bundle").
 */
import { systemSha256 } from "@agarose/core";
import { encodeFrame, LEAF_LIST, type Frame, type Manifest } from "@agarose/core/format";
import { needsLeaves, readLeaves, type Piece } from "@agarose/core/read";
import { log } from "../runtime/log.ts";
import type { Invocation } from "../runtime/invocation.ts";
import { popRegionSources, readPiece } from "./object-read.ts";

const EMPTY = new Uint8Array(0);

interface PieceFramesOptions {
  readonly invocation: Invocation;
  readonly manifest: Manifest;
  readonly pieces: readonly Piece[];
  /** The chunks that the plan promises. */
  readonly cached: readonly number[];
  /** Whether to send what is not cached too. */
  readonly sendsAll: boolean;
  readonly signal: AbortSignal;
}

/** Yields the frames in the order of the pieces. */
export async function* pieceFrames(options: PieceFramesOptions): AsyncGenerator<Uint8Array> {
  const { invocation, manifest, pieces, cached, sendsAll, signal } = options;
  const { k, version } = manifest;
  const isCached = ({ chunk }: Piece): boolean => cached.includes(chunk) || cached.length >= k;
  // All at once, and beside the leaves.
  const reads = pieces.map((piece) =>
    sendsAll && !isCached(piece) ? readPiece(invocation, manifest, piece, signal).catch(() => undefined) : undefined,
  );
  let leavesOf = -1;
  for (const [i, piece] of pieces.entries()) {
    const { chunk, stripe } = piece;
    const { index } = stripe;
    if (needsLeaves(manifest, piece) && leavesOf !== index) {
      leavesOf = index;
      yield frame(index, LEAF_LIST, await leaves(options, index));
    }
    if (reads[i]) yield frame(index, chunk, await reads[i]);
    if (!isCached(piece)) continue;
    const { frames } = await invocation.isolate.cache.read(version, index, cached, invocation.cacheContext);
    yield frame(index, chunk, await blocksOf(piece, frames, k, invocation));
  }
}

function frame(stripe: number, chunk: number, payload: Uint8Array | undefined): Uint8Array {
  return payload ? encodeFrame("chunk", stripe, chunk, payload) : encodeFrame("miss", stripe, chunk, EMPTY);
}

/** The leaves of a stripe, from memory or from a bucket; undefined when no bucket has them. */
async function leaves(
  { invocation, manifest, signal }: PieceFramesOptions,
  stripe: number,
): Promise<Uint8Array | undefined> {
  const { blocks, clock, codec } = invocation.isolate;
  const sources = popRegionSources(invocation, manifest, await invocation.configuration());
  const context = { codec, clock, sha256: systemSha256, random: Math.random, memory: blocks };
  return readLeaves({ manifest, sources, signal }, context, stripe).catch((error: unknown) => {
    if (!signal.aborted) log("warn", "leaf list not read", { key: manifest.key, version: manifest.version, error });
    return undefined;
  });
}

/** The blocks of a piece from its cached chunk, or decoded from k others; undefined without either. */
async function blocksOf(
  { chunk, stripe: { from, shardBytes } }: Piece,
  frames: readonly Frame[],
  k: number,
  { isolate }: Invocation,
): Promise<Uint8Array | undefined> {
  const shards = frames.map((cached) => ({
    index: cached.chunk,
    bytes: cached.payload.subarray(from, from + shardBytes),
  }));
  const own = shards.find(({ index }) => index === chunk);
  if (own) return own.bytes;
  if (shards.length < k) return undefined;
  return (await isolate.codec()).reconstruct(k, shards.slice(0, k), [chunk])[0];
}
