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
 * A long range to the end is often a seek, of which the first bytes are needed first, and which is given up. So few
 * bytes of it are under way at first, and one more for each that its consumer has taken, as in a connection that begins
 * (RFC 5681, section 3.1).
 */
const SEEK_BYTES = 256 * 1024;

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
export interface RangeReader {
  /** Whether all of it is being read. */
  readonly isOver: boolean;
  /** Whether blocks were read in order: each that has come makes room for the next one. */
  readonly hasFlowed: boolean;
  /**
   * Starts to read what comes next: a piece of a small range, a stripe, or a block. Undefined if there is no room for
   * it.
   *
   * @param ahead what has been started, and its consumer has not taken.
   * @param bytesMax of all that is ahead.
   */
  next(ahead: readonly Step[], bytesMax: number): Step | undefined;
  /** Must be called when the parts of a step have come. */
  came(step: Step): void;
}

/** Reads the range of `target`, until `readSignal` aborts. */
export function rangeReader(
  target: ReadTarget,
  { line, memory }: ReadContext,
  policy: ReadPolicy,
  stripes: StripeReader,
  readSignal: AbortSignal,
): RangeReader {
  const { manifest, range = { start: 0, end: manifest.bytes } } = target;
  /** Whether all of the range is so small that its pieces could be read. */
  const isInPieces = piecesOf(manifest, range) !== undefined;
  /** Whether it is a long range without an end. Of others, and of a whole object, the last byte is needed, too. */
  const isSeek = line && target.range?.end === manifest.bytes && !isInPieces;
  /** Whether `share` keeps whole stripes. */
  const keepsStripes = HAS_STORE && policy.stripes;
  const endStripe = Math.ceil(range.end / manifest.stripeBytes);
  /** Where in the object the part begins that is not asked for yet. */
  let at = range.start;
  /** Blocks of a small range, or of the rest of one, that are not requested yet. */
  let pieces: readonly Piece[] = [];
  let hasFlowed = false;
  /** How many bytes of steps have come. */
  let cameBytes = 0;
  let current: InOrder | undefined;
  /** The stripe that was read whole for its blocks. */
  let whole: { readonly index: number; readonly data: Promise<readonly Uint8Array[]> } | undefined;
  return {
    get isOver() {
      return isOver();
    },
    get hasFlowed() {
      return hasFlowed;
    },
    next,
    came(step) {
      step.hasCome = true;
      cameBytes += step.bytes;
    },
  };

  function isOver(): boolean {
    return at >= range.end && pieces.length === 0;
  }

  function next(ahead: readonly Step[], bytesMax: number): Step | undefined {
    if (isOver()) return undefined;
    const takenBytes = cameBytes - sumOf(ahead.filter(({ hasCome }) => hasCome));
    const mostBytes = Math.min(bytesMax, line?.aheadBytes ?? bytesMax, isSeek ? SEEK_BYTES + takenBytes : bytesMax);
    if (pieces.length === 0) {
      const stripe = stripeShape(manifest, Math.floor(at / manifest.stripeBytes));
      if (flows(stripe)) return nextBlock(stripe, ahead, mostBytes);
      if (!takesPieces()) return nextStripe(stripe, ahead, mostBytes);
    }
    const [piece, ...rest] = pieces;
    pieces = rest;
    return { bytes: 0, parts: readSmall(piece!) };
  }

  /** Whether what is left of the range is read as pieces. It is not for a read of whole stripes that has begun. */
  function takesPieces(): boolean {
    if (keepsStripes || (at > range.start && !hasFlowed)) return false;
    if (memory?.holds([wholeName(manifest)])) return false;
    const small = piecesOf(manifest, { start: at, end: range.end });
    if (!small) return false;
    pieces = small;
    at = range.end;
    return true;
  }

  /** Reads the next stripe, or its rest, of any k chunks. */
  function nextStripe(stripe: StripeShape, ahead: readonly Step[], bytesMax: number): Step | undefined {
    const bytes = manifest.stripeBytes;
    if (ahead.length >= WINDOW_STRIPES_MAX || (ahead.length > 0 && sumOf(ahead) + bytes > bytesMax)) return undefined;
    const part = { start: at, end: Math.min(range.end, stripe.start + stripe.dataBytes) };
    at = part.end;
    // A browser has the whole body of a GET in memory, and elsewhere the sender is held back.
    const span = line ? Math.max(1, Math.floor(bytesMax / bytes)) : endStripe;
    const last = Math.min(endStripe, stripe.index + span) - 1;
    const { promise, resolve } = Promise.withResolvers<void>();
    return { bytes, parts: takeStripe(stripe, part, last, promise), onTaken: resolve };
  }

  /** Whether to read a stripe, or its rest, as blocks in order. */
  function flows(stripe: StripeShape): boolean {
    // Until its first block is requested, what happens to the blocks before may still change how it is read.
    if (current?.stripe.index === stripe.index && current.places.size > 0) return true;
    const { start, end } = range;
    if (!line || keepsStripes || manifest.inline !== undefined) return false;
    if (!manifest.leaves && blockCount(manifest, stripe) > 1) return false;
    const from = Math.max(start, stripe.start);
    // Behind a seek to the end of a stripe comes as much of the next one.
    const wanted = Math.min(end - from, stripe.dataBytes);
    // Few bytes come as soon by all their blocks at once.
    if (wanted <= FLOW_BYTES_MIN) return false;
    const isSought = isSeek && from === start;
    const isInOrder = isSought || !line.isWide(wanted, stripes.regions);
    const rowsFrom =
      isInOrder && at <= from
        ? stripes.directUntil(stripe, Math.floor((from - stripe.start) / stripe.shardBytes))
        : undefined;
    // The rows of a stripe are kept until it is over. Where many reads share the memory, whole stripes take turns.
    if (rowsFrom === undefined || (rowsFrom < manifest.k && !keepsBlocks())) return false;
    const stop = new AbortController();
    const signal = AbortSignal.any([readSignal, stop.signal]);
    current = { stripe, rowsFrom, stop, signal, places: new Map() };
    return true;
  }

  /** Whether there is memory for blocks that have been delivered, and for those that come before their turn. */
  function keepsBlocks(): boolean {
    return line!.aheadBytes >= 2 * manifest.stripeBytes;
  }

  /** Reads the next blocks from their region, by the GET that has brought the ones before, or decodes them. */
  function nextBlock(stripe: StripeShape, ahead: readonly Step[], bytesMax: number): Step | undefined {
    const inOrder = current!;
    const [piece] = piecesIn(manifest, stripe, { start: at, end: range.end });
    const { stripe: wanted, blockBytes, chunk, start, end } = piece!;
    const step = STEP_BLOCKS * blockBytes;
    const place: Place = inOrder.places.get(wanted.from) ?? {
      shardBytes: Math.min(wanted.shardBytes, hasFlowed ? step - (wanted.from % step) : blockBytes),
      own: new Map(),
    };
    // The range may end before the place does.
    const shardBytes = Math.min(wanted.shardBytes, place.shardBytes);
    const isRow = chunk >= inOrder.rowsFrom && !place.row;
    const bytes = isRow ? (manifest.k - place.own.size) * place.shardBytes : shardBytes;
    // The first block must not share the line with many others. The next row is requested before this one has come.
    const window = Math.max(
      line!.windowBytes(stripes.regions) * (cameBytes > 0 ? 1 : START_SHARE),
      isRow ? 2 * bytes : 0,
    );
    // Blocks that have arrived may wait for an earlier one, which is no reason to leave the line idle.
    const mostAhead = Math.min(bytesMax, 2 * window) - bytes;
    const awaited = sumOf(ahead.filter(({ hasCome }) => !hasCome));
    if (ahead.length > 0 && (awaited + bytes > window || sumOf(ahead) > mostAhead)) return undefined;
    const part = { start: at, end: Math.min(end, start + shardBytes) };
    at = part.end;
    hasFlowed = true;
    inOrder.places.set(wanted.from, place);
    // A GET brings whole blocks, and no more than the read may request ahead.
    const aheadBytes = Math.floor(line!.aheadBytes / blockBytes) * blockBytes;
    const until = wanted.chunkOffset + Math.min(wanted.shardBytes, aheadBytes);
    const order = { until, patienceMs: line!.queueMs(bytes) };
    const block = { ...piece!, stripe: { ...wanted, shardBytes } };
    const read = async (): Promise<Uint8Array[]> => {
      const own = (): Promise<Uint8Array> => readBlock(block, place, order, inOrder);
      // Other reads want the blocks of a small range again, as the index of a file.
      const content = await (isInPieces
        ? stripes.remembered(blockNames(manifest, block), blockBytes, own, readSignal)
        : own());
      return [content.subarray(part.start - start, part.end - start)];
    };
    return { bytes, parts: read() };
  }

  /**
   * Reads a block from its own region. Where that fails or is late, this and all further blocks of the stripe come by
   * rows: the blocks at the same place in any k chunks, which bring those of the following chunks, too.
   */
  async function readBlock(piece: Piece, place: Place, order: ChunkOrder, inOrder: InOrder): Promise<Uint8Array> {
    const { chunk, stripe } = piece;
    const { own, shardBytes } = place;
    if (chunk < inOrder.rowsFrom) {
      const block = readPiece(piece, inOrder.signal, order);
      if (stripe.shardBytes === shardBytes) own.set(chunk, block);
      try {
        await block;
        if (!keepsBlocks()) own.delete(chunk);
        return block;
      } catch (error) {
        const isOther = readSignal.aborted || toAgaroseError(error).code !== "NOT_ENOUGH_CHUNKS";
        if (isOther && !inOrder.stop.signal.aborted) throw error;
        own.delete(chunk);
      }
      inOrder.rowsFrom = Math.min(inOrder.rowsFrom, chunk);
      inOrder.stop.abort(UNWANTED);
    }
    place.row ??= readRow({ ...piece, stripe: { ...stripe, shardBytes } }, order, own, inOrder);
    return (await place.row)[chunk]!;
  }

  /** Reads the data blocks of a row: from any k chunks, as far as they are not here or under way. */
  async function readRow(
    piece: Piece,
    order: ChunkOrder,
    own: Place["own"],
    inOrder: InOrder,
  ): Promise<readonly Uint8Array[]> {
    if (!keepsBlocks()) return cutWhole(piece);
    const here = new Map<number, Uint8Array>();
    const came = [...own].map(([chunk, block]) => block.then((bytes) => here.set(chunk, bytes)).catch(() => {}));
    await (inOrder.requested = Promise.all([inOrder.requested, ...came]));
    const read = (part: StripePart, signal: AbortSignal): Promise<readonly Uint8Array[]> =>
      stripes.row(part, here, signal, order);
    return (await verified(piece, readSignal, read)) ?? cutWhole(piece);
  }

  /** Reads the wanted bytes of one piece. */
  async function readSmall(piece: Piece): Promise<Uint8Array[]> {
    const { blockBytes, start, end } = piece;
    const read = (): Promise<Uint8Array> => readPiece(piece, readSignal);
    const bytes = await stripes.remembered(blockNames(manifest, piece), blockBytes, read, readSignal);
    return [bytes.subarray(Math.max(0, range.start - start), end - start)];
  }

  async function readPiece(piece: Piece, signal: AbortSignal, order?: ChunkOrder): Promise<Uint8Array> {
    const { chunk } = piece;
    const read = (part: StripePart, stopped: AbortSignal): Promise<Uint8Array> =>
      stripes.chunk(part, chunk, stopped, order);
    return (await verified(piece, signal, read)) ?? (await cutWhole(piece))[chunk]!;
  }

  /** Reads a part with the leaf list that verifies it. Resolves to undefined if no region has that list any more. */
  async function verified<T>(
    piece: Piece,
    signal: AbortSignal,
    read: (part: StripePart, signal: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    const { stripe } = piece;
    if (!needsLeaves(manifest, piece)) return read(stripe, signal);
    const stop = new AbortController();
    const leaves = stripes.leaves(stripe.index, readSignal);
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
  async function cutWhole({ stripe: { index, from, shardBytes } }: Piece): Promise<Uint8Array[]> {
    if (whole?.index !== index) {
      whole = { index, data: readWhole(stripeShape(manifest, index), index) };
    }
    return (await whole.data).map((shard) => shard.subarray(from, from + shardBytes));
  }

  /** Reads a whole stripe, a large one in its turn. */
  function readWhole(stripe: StripeShape, last: number, taken?: Promise<void>): Promise<readonly Uint8Array[]> {
    const read = (): Promise<readonly Uint8Array[]> => stripes.data(stripe, last, readSignal);
    return line && stripe.dataBytes > TURN_BYTES_MIN ? line.inTurn(read, readSignal, taken) : read();
  }

  /** Reads `part` of one stripe, as pieces in order. */
  async function takeStripe(
    stripe: StripeShape,
    part: ByteRange,
    last: number,
    taken: Promise<void>,
  ): Promise<Uint8Array[]> {
    const data = (): Promise<readonly Uint8Array[]> => readWhole(stripe, last, taken);
    if (!memory || keepsStripes || !isSmall(manifest)) return cut(stripe, part, await data());
    const read = (): Promise<Uint8Array> => data().then(concat);
    const content = await memory.read([wholeName(manifest)], manifest.k * stripe.shardBytes, read, readSignal);
    return [content.subarray(part.start, part.end)];
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
