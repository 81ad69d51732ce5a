/**
 * Assembles the bytes of a range: from the pieces of a small one, or from whole stripes. Small objects, and the blocks
 * of pieces, come from memory if they are there.
 */
import { HAS_STORE } from "../features.ts";
import { concat } from "../format/hash-tree.ts";
import { stripeShape, type StripeShape } from "../format/manifest/index.ts";
import type { ByteRange } from "../http/range.ts";
import { LeafHashes } from "./leaf-hashes.ts";
import { blockNames, isSmall, needsLeaves, piecesOf, wholeName, type Piece } from "./pieces.ts";
import type { ReadContext, ReadPolicy, ReadTarget } from "./read-options.ts";
import type { StripeReader } from "./stripe-reader.ts";

/** The range of one read. */
export class RangeReader {
  readonly #target: ReadTarget;
  readonly #context: ReadContext;
  readonly #stripes: StripeReader;
  readonly #leaves: LeafHashes;
  readonly #signal: AbortSignal;
  readonly #range: ByteRange;
  /** Whether `share` keeps whole stripes. */
  readonly #keepsStripes: boolean | undefined;
  /** What a small range lies in and is not asked for yet. The read then reads no whole stripe. */
  #pieces: readonly Piece[];
  #nextStripe: number;
  readonly #endStripe: number;

  constructor(
    target: ReadTarget,
    context: ReadContext,
    policy: ReadPolicy,
    stripes: StripeReader,
    signal: AbortSignal,
  ) {
    const { manifest } = target;
    const range = target.range ?? { start: 0, end: manifest.bytes };
    this.#target = target;
    this.#context = context;
    this.#stripes = stripes;
    this.#leaves = new LeafHashes(target, context, stripes);
    this.#signal = signal;
    this.#range = range;
    this.#keepsStripes = HAS_STORE && policy.stripes;
    this.#endStripe = Math.ceil(range.end / manifest.stripeBytes);
    const pieces =
      this.#keepsStripes || context.memory?.holds([wholeName(manifest)]) ? undefined : piecesOf(manifest, range);
    this.#pieces = pieces ?? [];
    this.#nextStripe = pieces ? this.#endStripe : Math.floor(range.start / manifest.stripeBytes);
  }

  /** Whether all of it is being read. */
  get isOver(): boolean {
    return this.#nextStripe >= this.#endStripe;
  }

  /** Starts to read what comes next: all pieces of a small range, or stripes while there `isRoom` for one more. */
  next(isRoom: (started: number) => boolean): Promise<Uint8Array[]>[] {
    const started = this.#pieces.map((piece) => this.#piece(piece));
    this.#pieces = [];
    while (isRoom(started.length) && !this.isOver) {
      started.push(this.#stripe(stripeShape(this.#target.manifest, this.#nextStripe++)));
    }
    return started;
  }

  /** Reads the wanted bytes of one piece. */
  async #piece(piece: Piece): Promise<Uint8Array[]> {
    const { manifest } = this.#target;
    const { blockBytes, start, end } = piece;
    const read = (): Promise<Uint8Array> => this.#readPiece(piece);
    const { memory } = this.#context;
    const bytes = await (memory?.read(blockNames(manifest, piece), blockBytes, read, this.#signal) ?? read());
    return [bytes.subarray(Math.max(0, this.#range.start - start), end - start)];
  }

  async #readPiece(piece: Piece): Promise<Uint8Array> {
    const { manifest } = this.#target;
    const { stripe, chunk } = piece;
    const signal = this.#signal;
    if (!needsLeaves(manifest, piece)) return this.#stripes.chunk(stripe, chunk, signal);
    const stop = new AbortController();
    const leaves = this.#leaves.of(stripe.index, signal);
    leaves.catch((error: unknown) => stop.abort(error));
    try {
      return await this.#stripes.chunk({ ...stripe, leaves }, chunk, AbortSignal.any([signal, stop.signal]));
    } catch (error) {
      signal.throwIfAborted();
      if (!stop.signal.aborted) throw error;
      // No region has the leaf list any more: the manifest has the hash of the whole shard.
      const bytes = await this.#stripes.chunk({ ...stripeShape(manifest, stripe.index), from: 0 }, chunk, signal);
      return bytes.subarray(stripe.from, stripe.from + stripe.shardBytes);
    }
  }

  /** Reads the wanted part of one stripe, as pieces in order. */
  async #stripe(stripe: StripeShape): Promise<Uint8Array[]> {
    const { manifest } = this.#target;
    const { memory } = this.#context;
    const signal = this.#signal;
    const data = (): Promise<readonly Uint8Array[]> => this.#stripes.data(stripe, this.#endStripe - 1, signal);
    if (!memory || this.#keepsStripes || !isSmall(manifest)) return this.#cut(stripe, await data());
    const read = (): Promise<Uint8Array> => data().then(concat);
    const whole = await memory.read([wholeName(manifest)], manifest.k * stripe.shardBytes, read, signal);
    return [whole.subarray(this.#range.start, this.#range.end)];
  }

  /** Drops the padding and what is outside the range. */
  #cut(stripe: StripeShape, data: readonly Uint8Array[]): Uint8Array[] {
    const from = Math.max(this.#range.start, stripe.start);
    const to = Math.min(this.#range.end, stripe.start + stripe.dataBytes);
    return data.flatMap((shard, chunk) => {
      const start = stripe.start + chunk * stripe.shardBytes;
      const part = shard.subarray(Math.max(0, from - start), Math.max(0, to - start));
      return part.length > 0 ? [part] : [];
    });
  }
}
