/**
 * Assembles the bytes of a range: from the pieces of a small one, from whole stripes, or from blocks in order, which is
 * best on a line that is narrower than its sources. Small objects, and the blocks of pieces, come from memory if they
 * are there.
 */
import { toAgaroseError } from "../errors.ts";
import { HAS_STORE } from "../features.ts";
import { concat } from "../format/hash-tree.ts";
import { stripeShape, type StripePart, type StripeShape } from "../format/manifest/index.ts";
import { blockCount } from "../format/manifest/stripe-shape.ts";
import type { ByteRange } from "../http/range.ts";
import { UNWANTED } from "../sources/source.ts";
import { blockNames, isSmall, needsLeaves, piecesIn, piecesOf, wholeName, type Piece } from "./pieces.ts";
import { WINDOW_STRIPES_MAX, type ReadContext, type ReadPolicy, type ReadTarget } from "./read-options.ts";
import type { ChunkOrder, StripeReader } from "./stripe-reader.ts";

/** A stripe of at most so many bytes waits for no turn: large reads hold up no small one. */
const TURN_BYTES_MIN = 1024 * 1024;
/** Of a stripe, so few bytes are read at once: they take hardly longer than one block. */
const FLOW_BYTES_MIN = 128 * 1024;
/** Behind the first block come so many at a time, because each request has a cost. */
const STEP_BLOCKS = 2;
/** Before the first block has come, this share of what keeps the line busy is under way. */
const START_SHARE = 1 / 2;
/**
 * A read that begins in the middle of an object is a seek, which is often given up. So few bytes of it are under way at
 * first, …
 */
const SEEK_BYTES = 256 * 1024;
/**
 * … and so many more for each byte that has come, a little more than a connection does (RFC 5681, section 3.1). With 2,
 * seeks that were given up brought 1.36 times the bytes of a copy at 1 Gbit/s, and 15 MB came 5% sooner.
 */
const SEEK_GROWTH = 1.5;

/** The next part of a read. */
export interface Step {
  /** How many bytes of the object are fetched for it. */
  readonly bytes: number;
  /** Its wanted bytes, in order. */
  readonly parts: Promise<Uint8Array[]>;
  /** Whether they have come, and the consumer has not taken them yet. */
  hasCome?: boolean;
  /** Must be called when the consumer has taken them. */
  readonly onTaken?: () => void;
}

/** Blocks at one place in the shards of a stripe, which is the same in all shards so that one row serves them all. */
interface Place {
  readonly shardBytes: number;
  /** Blocks from their own regions, by chunk. A row requests the others. */
  readonly own: Map<number, Promise<Uint8Array>>;
  /** All data blocks, decoded. */
  row?: Promise<readonly Uint8Array[]>;
}

/** A stripe whose blocks are read in order. */
interface InOrder {
  readonly stripe: StripeShape;
  /** From this data chunk on, blocks come by rows: its region is down, late or wrong. */
  rowsFrom: number;
  /** Ends the requests to their own regions. */
  readonly stop: AbortController;
  readonly signal: AbortSignal;
  /** By where they begin. */
  readonly places: Map<number, Place>;
  /** Resolves when the rows so far are requested, which go in order so that one GET of a chunk brings them all. */
  requested?: Promise<unknown>;
}

/** The range of one read. */
export class RangeReader {
  /** Whether blocks were read in order: each that has come makes room for the next one. */
  hasFlowed = false;
  /** How many bytes of steps have come, which its owner counts. */
  came = 0;
  #inOrder: InOrder | undefined;
  /** The stripe that was read whole for its blocks. */
  #whole: { readonly index: number; readonly data: Promise<readonly Uint8Array[]> } | undefined;
  readonly #target: ReadTarget;
  readonly #context: ReadContext;
  readonly #stripes: StripeReader;
  readonly #signal: AbortSignal;
  readonly #range: ByteRange;
  /** Whether all of the range is so small that its pieces could be read. */
  readonly #isInPieces: boolean;
  /** Whether it is the beginning of a long range in the middle of the object. */
  readonly #isSeek: unknown;
  /** Whether `share` keeps whole stripes. */
  #keepsStripes: boolean | undefined;
  /** Blocks of a small range, or of the rest of one, that are not requested yet. */
  #pieces: readonly Piece[] = [];
  /** Where in the object the part begins that is not asked for yet. */
  #at: number;
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
    this.#signal = signal;
    this.#range = range;
    this.#isInPieces = piecesOf(manifest, range) !== undefined;
    this.#isSeek = context.line && range.start > 0 && !this.#isInPieces;
    if (HAS_STORE) this.#keepsStripes = policy.stripes;
    this.#endStripe = Math.ceil(range.end / manifest.stripeBytes);
    this.#at = range.start;
  }

  /** Whether all of it is being read. */
  get isOver(): boolean {
    return this.#at >= this.#range.end && this.#pieces.length === 0;
  }

  /**
   * Starts to read what comes next: a piece of a small range, a stripe, or a block. Undefined if there is no room for
   * it.
   *
   * @param ahead what has been started, and its consumer has not taken.
   * @param bytesMax of all that is ahead.
   */
  next(ahead: readonly Step[], bytesMax: number): Step | undefined {
    const { manifest } = this.#target;
    if (this.isOver) return undefined;
    const mostBytes = Math.min(
      bytesMax,
      this.#context.line?.aheadBytes ?? bytesMax,
      this.#isSeek ? SEEK_BYTES + SEEK_GROWTH * this.came : bytesMax,
    );
    if (this.#pieces.length === 0) {
      const stripe = stripeShape(manifest, Math.floor(this.#at / manifest.stripeBytes));
      if (this.#flows(stripe)) return this.#nextBlock(stripe, ahead, mostBytes);
      if (!this.#isSmall()) return this.#nextStripe(stripe, ahead, mostBytes);
    }
    const [piece, ...pieces] = this.#pieces;
    this.#pieces = pieces;
    return { bytes: 0, parts: this.#piece(piece!) };
  }

  /** Whether what is left of the range is read as pieces. It is not for a read of whole stripes that has begun. */
  #isSmall(): boolean {
    const { manifest } = this.#target;
    if ((HAS_STORE && this.#keepsStripes) || (this.#at > this.#range.start && !this.hasFlowed)) return false;
    if (this.#context.memory?.holds([wholeName(manifest)])) return false;
    const pieces = piecesOf(manifest, { start: this.#at, end: this.#range.end });
    if (!pieces) return false;
    this.#pieces = pieces;
    this.#at = this.#range.end;
    return true;
  }

  /** Reads the next stripe, or its rest, of any k chunks. */
  #nextStripe(stripe: StripeShape, ahead: readonly Step[], bytesMax: number): Step | undefined {
    const { manifest } = this.#target;
    const bytes = manifest.stripeBytes;
    if (ahead.length >= WINDOW_STRIPES_MAX || (ahead.length > 0 && sumOf(ahead) + bytes > bytesMax)) return undefined;
    const range = { start: this.#at, end: Math.min(this.#range.end, stripe.start + stripe.dataBytes) };
    this.#at = range.end;
    // A browser has the whole body of a GET in memory, and elsewhere the sender is held back.
    const span = this.#context.line ? Math.max(1, Math.floor(bytesMax / bytes)) : this.#endStripe;
    const last = Math.min(this.#endStripe, stripe.index + span) - 1;
    const { promise, resolve } = Promise.withResolvers<void>();
    return { bytes, parts: this.#stripe(stripe, range, last, promise), onTaken: resolve };
  }

  /** Whether to read a stripe, or its rest, as blocks in order. */
  #flows(stripe: StripeShape): boolean {
    // Until its first block is requested, what happens to the blocks before may still change how it is read.
    if (this.#inOrder?.stripe.index === stripe.index && this.#inOrder.places.size > 0) return true;
    const { manifest } = this.#target;
    const { line } = this.#context;
    const { start, end } = this.#range;
    if (!line || (HAS_STORE && this.#keepsStripes) || manifest.inline !== undefined) return false;
    if (!manifest.leaves && blockCount(manifest, stripe) > 1) return false;
    const from = Math.max(start, stripe.start);
    // Behind a seek to the end of a stripe comes as much of the next one.
    const wanted = Math.min(end - from, stripe.dataBytes);
    // Few bytes come as soon by all their blocks at once.
    if (wanted <= FLOW_BYTES_MIN) return false;
    const isSought = this.#isSeek && from === start;
    const isInOrder = isSought || !line.isWide(wanted, this.#stripes.regions);
    const rowsFrom =
      isInOrder && this.#at <= from
        ? this.#stripes.directUntil(stripe, Math.floor((from - stripe.start) / stripe.shardBytes))
        : undefined;
    // The rows of a stripe are kept until it is over. Where many reads share the memory, whole stripes take turns.
    if (rowsFrom === undefined || (rowsFrom < manifest.k && !this.#keepsBlocks)) return false;
    const stop = new AbortController();
    const signal = AbortSignal.any([this.#signal, stop.signal]);
    this.#inOrder = { stripe, rowsFrom, stop, signal, places: new Map() };
    return true;
  }

  /** Whether there is memory for blocks that have been delivered, and for those that come before their turn. */
  get #keepsBlocks(): boolean {
    return this.#context.line!.aheadBytes >= 2 * this.#target.manifest.stripeBytes;
  }

  /** Reads the next blocks from their region, by the GET that has brought the ones before, or decodes them. */
  #nextBlock(stripe: StripeShape, ahead: readonly Step[], bytesMax: number): Step | undefined {
    const { manifest } = this.#target;
    const line = this.#context.line!;
    const inOrder = this.#inOrder!;
    const [piece] = piecesIn(manifest, stripe, { start: this.#at, end: this.#range.end });
    const { stripe: wanted, blockBytes, chunk, start, end } = piece!;
    const step = STEP_BLOCKS * blockBytes;
    const place: Place = inOrder.places.get(wanted.from) ?? {
      shardBytes: Math.min(wanted.shardBytes, this.hasFlowed ? step - (wanted.from % step) : blockBytes),
      own: new Map(),
    };
    // The range may end before the place does.
    const shardBytes = Math.min(wanted.shardBytes, place.shardBytes);
    const isRow = chunk >= inOrder.rowsFrom && !place.row;
    const bytes = isRow ? (manifest.k - place.own.size) * place.shardBytes : shardBytes;
    // The first block must not share the line with many others. The next row is requested before this one has come.
    const window = Math.max(
      line.windowBytes(this.#stripes.regions) * (this.came > 0 ? 1 : START_SHARE),
      isRow ? 2 * bytes : 0,
    );
    // Blocks that have arrived may wait for an earlier one, which is no reason to leave the line idle.
    const mostAhead = Math.min(bytesMax, 2 * window) - bytes;
    const awaited = sumOf(ahead.filter(({ hasCome }) => !hasCome));
    if (ahead.length > 0 && (awaited + bytes > window || sumOf(ahead) > mostAhead)) return undefined;
    const range = { start: this.#at, end: Math.min(end, start + shardBytes) };
    this.#at = range.end;
    this.hasFlowed = true;
    inOrder.places.set(wanted.from, place);
    // A GET brings whole blocks, and no more than the read may request ahead.
    const aheadBytes = Math.floor(line.aheadBytes / blockBytes) * blockBytes;
    const until = wanted.chunkOffset + Math.min(wanted.shardBytes, aheadBytes);
    const order = { until, patienceMs: line.queueMs(bytes) };
    const block = { ...piece!, stripe: { ...wanted, shardBytes } };
    const read = async (): Promise<Uint8Array[]> => {
      const own = (): Promise<Uint8Array> => this.#readBlock(block, place, order, inOrder);
      // Other reads want the blocks of a small range again, as the index of a file.
      const content = await (this.#isInPieces
        ? this.#stripes.remembered(blockNames(manifest, block), blockBytes, own, this.#signal)
        : own());
      return [content.subarray(range.start - start, range.end - start)];
    };
    return { bytes, parts: read() };
  }

  /**
   * Reads a block from its own region. Where that fails or is late, this and all further blocks of the stripe come by
   * rows: the blocks at the same place in any k chunks, which bring those of the following chunks, too.
   */
  async #readBlock(piece: Piece, place: Place, order: ChunkOrder, inOrder: InOrder): Promise<Uint8Array> {
    const { chunk, stripe } = piece;
    const { own, shardBytes } = place;
    if (chunk < inOrder.rowsFrom) {
      const block = this.#readPiece(piece, inOrder.signal, order);
      if (stripe.shardBytes === shardBytes) own.set(chunk, block);
      try {
        await block;
        if (!this.#keepsBlocks) own.delete(chunk);
        return block;
      } catch (error) {
        const isOther = this.#signal.aborted || toAgaroseError(error).code !== "NOT_ENOUGH_CHUNKS";
        if (isOther && !inOrder.stop.signal.aborted) throw error;
        own.delete(chunk);
      }
      inOrder.rowsFrom = Math.min(inOrder.rowsFrom, chunk);
      inOrder.stop.abort(UNWANTED);
    }
    place.row ??= this.#readRow({ ...piece, stripe: { ...stripe, shardBytes } }, order, own, inOrder);
    return (await place.row)[chunk]!;
  }

  /** Reads the data blocks of a row: from any k chunks, as far as they are not here or under way. */
  async #readRow(piece: Piece, order: ChunkOrder, own: Place["own"], inOrder: InOrder): Promise<readonly Uint8Array[]> {
    if (!this.#keepsBlocks) return this.#cutWhole(piece);
    const here = new Map<number, Uint8Array>();
    const came = [...own].map(([chunk, block]) => block.then((bytes) => here.set(chunk, bytes)).catch(() => {}));
    await (inOrder.requested = Promise.all([inOrder.requested, ...came]));
    const read = (part: StripePart, signal: AbortSignal): Promise<readonly Uint8Array[]> =>
      this.#stripes.row(part, here, signal, order);
    return (await this.#verified(piece, this.#signal, read)) ?? this.#cutWhole(piece);
  }

  /** Reads the wanted bytes of one piece. */
  async #piece(piece: Piece): Promise<Uint8Array[]> {
    const { manifest } = this.#target;
    const { blockBytes, start, end } = piece;
    const read = (): Promise<Uint8Array> => this.#readPiece(piece, this.#signal);
    const bytes = await this.#stripes.remembered(blockNames(manifest, piece), blockBytes, read, this.#signal);
    return [bytes.subarray(Math.max(0, this.#range.start - start), end - start)];
  }

  async #readPiece(piece: Piece, signal: AbortSignal, order?: ChunkOrder): Promise<Uint8Array> {
    const { chunk } = piece;
    const read = (part: StripePart, stopped: AbortSignal): Promise<Uint8Array> =>
      this.#stripes.chunk(part, chunk, stopped, order);
    return (await this.#verified(piece, signal, read)) ?? (await this.#cutWhole(piece))[chunk]!;
  }

  /** Reads a part with the leaf list that verifies it. Resolves to undefined if no region has that list any more. */
  async #verified<T>(
    piece: Piece,
    signal: AbortSignal,
    read: (part: StripePart, signal: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    const { stripe } = piece;
    if (!needsLeaves(this.#target.manifest, piece)) return read(stripe, signal);
    const stop = new AbortController();
    const leaves = this.#stripes.leaves(stripe.index, this.#signal);
    leaves.catch((error: unknown) => stop.abort(error));
    try {
      return await read({ ...stripe, leaves }, AbortSignal.any([signal, stop.signal]));
    } catch (error) {
      signal.throwIfAborted();
      if (!stop.signal.aborted) throw error;
      return undefined;
    }
  }

  /** Reads the data blocks of a row as a part of its stripe, whose shards have hashes in the manifest. */
  async #cutWhole({ stripe: { index, from, shardBytes } }: Piece): Promise<Uint8Array[]> {
    if (this.#whole?.index !== index) {
      this.#whole = { index, data: this.#data(stripeShape(this.#target.manifest, index), index) };
    }
    return (await this.#whole.data).map((shard) => shard.subarray(from, from + shardBytes));
  }

  /** Reads a whole stripe, a large one in its turn. */
  #data(stripe: StripeShape, last: number, taken?: Promise<void>): Promise<readonly Uint8Array[]> {
    const read = (): Promise<readonly Uint8Array[]> => this.#stripes.data(stripe, last, this.#signal);
    const { line } = this.#context;
    return line && stripe.dataBytes > TURN_BYTES_MIN ? line.inTurn(read, this.#signal, taken) : read();
  }

  /** Reads the part `range` of one stripe, as pieces in order. */
  async #stripe(stripe: StripeShape, range: ByteRange, last: number, taken: Promise<void>): Promise<Uint8Array[]> {
    const { manifest } = this.#target;
    const { memory } = this.#context;
    const signal = this.#signal;
    const data = (): Promise<readonly Uint8Array[]> => this.#data(stripe, last, taken);
    if (!memory || (HAS_STORE && this.#keepsStripes) || !isSmall(manifest)) return cut(stripe, range, await data());
    const read = (): Promise<Uint8Array> => data().then(concat);
    const whole = await memory.read([wholeName(manifest)], manifest.k * stripe.shardBytes, read, signal);
    return [whole.subarray(range.start, range.end)];
  }
}

function sumOf(steps: readonly Step[]): number {
  return steps.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Drops the padding and what is outside the range. */
function cut(stripe: StripeShape, range: ByteRange, data: readonly Uint8Array[]): Uint8Array[] {
  return data.flatMap((shard, chunk) => {
    const start = stripe.start + chunk * stripe.shardBytes;
    const part = shard.subarray(Math.max(0, range.start - start), Math.max(0, range.end - start));
    return part.length > 0 ? [part] : [];
  });
}
