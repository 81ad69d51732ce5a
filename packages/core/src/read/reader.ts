/**
 * The one reader: the service worker, the edge and `agarose get` use it.
 *
 * It reads stripes ahead within a bounded window, each by late binding (`stripe-read.ts`). It decodes those that lack a
 * data chunk and delivers all in order. A read that cannot be completed errors its stream: it never ends short.
 */
import type { Decoder } from "../codec.ts";
import { AgaroseError, HAS_MESSAGES, toAgaroseError } from "../errors.ts";
import {
  inlineBytes,
  LEAF_LIST,
  leafShape,
  stripeShape,
  type Manifest,
  type StripePart,
  type StripeShape,
} from "../format/manifest/index.ts";
import { HAS_STORE } from "../features.ts";
import { concat } from "../format/hash-tree.ts";
import type { Clock, Random, Sha256 } from "../ports.ts";
import type { ByteRange } from "../http/range.ts";
import { pullStream, type PullSink } from "../pull-stream.ts";
import type { BlockMemory } from "./block-memory.ts";
import { blockNames, isSmall, needsLeaves, piecesOf, wholeName, type Piece } from "./pieces.ts";
import { planStripe, type Candidate, type PlanOptions } from "./read-plan.ts";
import { isFault, type Decoding, type ReadReport, type RequestRecord } from "./read-report.ts";
import type { ChunkSource } from "../sources/source.ts";
import { readStripe, type Hedge } from "./stripe-read.ts";
import { dataShards } from "./stripe-shards.ts";

/** The result of reading one stripe. */
export interface StripeData {
  /** The k data shards in order, with the padding of the last ones. */
  readonly data: readonly Uint8Array[];
  /** Returns the requests that were made for it so far. */
  readonly made?: () => readonly RequestRecord[];
  /** The codec's work for it. */
  readonly decoding: Decoding;
}

/**
 * Reads stripe `stripe` by calling `read`, or resolves to what another read of the same version gets by its own `read`.
 * Must reject when `signal` aborts.
 */
export type StripeSharing = (
  stripe: number,
  read: (signal: AbortSignal) => Promise<StripeData>,
  signal: AbortSignal,
) => Promise<StripeData>;

/** What a read reads, where from, and how. */
export interface ReadOptions {
  readonly manifest: Manifest;
  /** Where its chunks may come from. The read closes them. */
  readonly sources: readonly ChunkSource[];
  /** Loads the codec. It is called only when a stripe must be decoded. */
  readonly codec: () => Promise<Decoder>;
  readonly clock: Clock;
  readonly sha256: Sha256;
  readonly random: Random;
  /** Which bytes to read. Only the stripes that it touches are read. Default: the whole object. */
  readonly range?: ByteRange;
  /** Keeps small objects, and the blocks of small ranges, for other reads. Default: nothing is kept. */
  readonly memory?: BlockMemory;
  /**
   * Whether a piece whose chunk fails, is late, or is known to be slow, is given up. The read then resolves when all of
   * its pieces are ready. By default k other chunks replace it.
   */
  readonly narrow?: ((isLate: boolean) => boolean) | undefined;
  /** Whether to read whole stripes for small ranges too, for `share` to keep. Default false. */
  readonly stripes?: boolean;
  /** Aborts the read, which then fails with ABORTED. */
  readonly signal?: AbortSignal;
  /** How many requests beyond k each stripe starts with. Default 1. */
  readonly delta?: number;
  /** Whether to ask one more source when the expected time has passed. Default true. */
  readonly hedge?: Hedge;
  /**
   * The most object bytes that are being fetched or wait for the consumer, in whole stripes: at least one, at most
   * `WINDOW_STRIPES_MAX`. A function is called before each further stripe. Default 16 MiB.
   */
  readonly windowBytes?: number | (() => number);
  /** A stripe fails with READ_TIMEOUT when none of its sources sends anything for this time. Default 30,000 ms. */
  readonly timeoutMs?: number;
  /** Lets concurrent reads of one version share their requests. Default: each read makes its own. */
  readonly share?: StripeSharing;
  /** Called when a request starts and when it ends. Must not throw. */
  readonly onRequest?: (record: RequestRecord) => void;
  /** Called once when the read ends. `error` is undefined if it is complete, else why it was cancelled or failed. */
  readonly onEnd?: (report: ReadReport, error?: unknown) => void;
}

/** A read that has started. */
export interface ObjectRead {
  /** The bytes of the range, in order. It errors if the read fails. */
  readonly body: ReadableStream<Uint8Array>;
  /** What the read does. It grows while the body is read. */
  readonly report: ReadReport;
}

/** Default of `ReadOptions.delta`, in requests. */
export const DELTA_DEFAULT = 1;
/** Default of `ReadOptions.windowBytes`. */
export const WINDOW_BYTES_DEFAULT = 16 * 1024 * 1024;
/** The most stripes of a window: small stripes must not cause hundreds of requests at a time. */
export const WINDOW_STRIPES_MAX = 16;
/** Default of `ReadOptions.timeoutMs`. */
export const STRIPE_TIMEOUT_MS_DEFAULT = 30_000;
/** How long a source that failed is asked last. After that it may have recovered. */
const AVOID_FAILED_MS = 10_000;

/**
 * Starts a read and resolves when its first stripe is ready. A read that cannot succeed then rejects here, with
 * NOT_ENOUGH_CHUNKS, READ_TIMEOUT or ABORTED, instead of in the middle of a body.
 */
export async function openRead(options: ReadOptions): Promise<ObjectRead> {
  const read = new Read(options);
  await read.firstStripe();
  return { body: read.stream(), report: read.report };
}

/** Returns the verified leaves of one stripe, from `memory` or a source. Rejects as `openRead` does. */
export async function readLeaves(options: Omit<ReadOptions, "range">, stripe: number): Promise<Uint8Array> {
  const read = new Read({ ...options, range: { start: 0, end: 0 } });
  try {
    return await read.leavesOf(stripe);
  } finally {
    read.finish();
  }
}

const DEFAULTS: Required<Pick<ReadOptions, "delta" | "hedge" | "timeoutMs">> = {
  delta: DELTA_DEFAULT,
  hedge: true,
  timeoutMs: STRIPE_TIMEOUT_MS_DEFAULT,
};

class Read {
  readonly report: ReadReport;
  readonly #options: ReadOptions & typeof DEFAULTS;
  readonly #abort = new AbortController();
  /** When each source last failed. */
  readonly #failedAtMs = new Map<string, number>();
  readonly #window: Promise<Uint8Array[]>[] = [];
  readonly #range: ByteRange;
  /** The numbers that `random` returned for the first stripe. */
  readonly #draws: number[] = [];
  #nextStripe: number;
  readonly #endStripe: number;
  /** The leaf lists of stripes. */
  readonly #leaves = new Map<number, Promise<Uint8Array>>();
  /** What a small range lies in. The read then reads no whole stripe. */
  #pieces: Piece[] | undefined;
  #sink: PullSink<Uint8Array> | undefined;
  readonly #detach: () => void;

  constructor(options: ReadOptions) {
    const { manifest, range, signal, memory } = options;
    const stripes = HAS_STORE && options.stripes;
    this.#options = { ...DEFAULTS, ...options };
    this.report = { startMs: options.clock.now(), requests: [], decoding: { ms: 0, shards: 0 } };
    this.#range = range ?? { start: 0, end: manifest.bytes };
    this.#nextStripe = Math.floor(this.#range.start / manifest.stripeBytes);
    this.#endStripe = Math.ceil(this.#range.end / manifest.stripeBytes);
    this.#pieces = stripes || memory?.holds([wholeName(manifest)]) ? undefined : piecesOf(manifest, this.#range);
    if (this.#pieces) this.#nextStripe = this.#endStripe;
    const onAbort = (): void => this.finish(toAgaroseError(signal?.reason, "ABORTED"));
    signal?.addEventListener("abort", onAbort);
    this.#detach = () => signal?.removeEventListener("abort", onAbort);
    if (signal?.aborted) onAbort();
  }

  async firstStripe(): Promise<void> {
    this.#fillWindow();
    try {
      this.#abort.signal.throwIfAborted();
      // What is given up must not fail a body that has begun.
      await (this.#options.narrow ? Promise.all(this.#window) : this.#window[0]);
    } catch (cause) {
      const error = toAgaroseError(cause);
      this.finish(error);
      throw error;
    }
  }

  stream(): ReadableStream<Uint8Array> {
    return pullStream<Uint8Array>({
      start: (sink) => {
        this.#sink = sink;
      },
      pull: (sink) => this.#pull(sink),
      // One microtask later: WebKit 2.50 stops a service worker for good when requests are aborted within this call.
      cancel: (reason) =>
        queueMicrotask(() =>
          // Consumers give reasons of their own, or none. Only a failure of ours on the way to them says more.
          this.finish(
            reason === undefined
              ? new AgaroseError("ABORTED", HAS_MESSAGES && "the consumer cancelled")
              : toAgaroseError(reason, "ABORTED"),
          ),
        ),
    });
  }

  /** Enqueues one stripe. The stream calls it when the stripe before is consumed, so only one of them is in memory. */
  async #pull(sink: PullSink<Uint8Array>): Promise<void> {
    this.#fillWindow();
    try {
      const parts = (await this.#window.shift()) ?? [];
      // `cancel` ends the read of a consumer that has left.
      if (sink.isOver) return;
      for (const part of parts) sink.enqueue(part);
      if (this.#window.length > 0 || this.#nextStripe < this.#endStripe) return;
      sink.close();
      this.finish();
    } catch (error) {
      if (!sink.isOver) this.finish(toAgaroseError(error));
    }
  }

  #windowStripes(): number {
    const { manifest, windowBytes = WINDOW_BYTES_DEFAULT } = this.#options;
    const bytes = typeof windowBytes === "function" ? windowBytes() : windowBytes;
    return Math.min(WINDOW_STRIPES_MAX, Math.max(1, Math.floor(bytes / manifest.stripeBytes)));
  }

  #fillWindow(): void {
    if (this.#abort.signal.aborted) return;
    for (const piece of this.#pieces ?? []) this.#expect(this.#piece(piece));
    this.#pieces = [];
    while (this.#window.length < this.#windowStripes() && this.#nextStripe < this.#endStripe) {
      this.#expect(this.#stripe(stripeShape(this.#options.manifest, this.#nextStripe++)));
    }
  }

  #expect(parts: Promise<Uint8Array[]>): void {
    // `#pull` reports the failure. Until then it must not count as unhandled.
    parts.catch(() => {});
    this.#window.push(parts);
  }

  /** Reads the wanted bytes of one piece. */
  async #piece(piece: Piece): Promise<Uint8Array[]> {
    const { manifest, memory } = this.#options;
    const { signal } = this.#abort;
    const { blockBytes, start, end } = piece;
    const read = (): Promise<Uint8Array> => this.#readPiece(piece, signal);
    const bytes = await (memory?.read(blockNames(manifest, piece), blockBytes, read, signal) ?? read());
    return [bytes.subarray(Math.max(0, this.#range.start - start), end - start)];
  }

  async #readPiece(piece: Piece, signal: AbortSignal): Promise<Uint8Array> {
    const { manifest } = this.#options;
    const { stripe, chunk } = piece;
    if (!needsLeaves(manifest, piece)) return (await this.#read(stripe, signal, chunk)).data[0]!;
    const stop = new AbortController();
    const leaves = this.leavesOf(stripe.index);
    leaves.catch((error: unknown) => stop.abort(error));
    try {
      const part = { ...stripe, leaves };
      return (await this.#read(part, AbortSignal.any([signal, stop.signal]), chunk)).data[0]!;
    } catch (error) {
      signal.throwIfAborted();
      if (!stop.signal.aborted) throw error;
      // No region has the leaf list any more: the manifest has the hash of the whole shard.
      const shard = { ...stripeShape(manifest, stripe.index), from: 0 };
      const [bytes] = (await this.#read(shard, signal, chunk)).data;
      return bytes!.subarray(stripe.from, stripe.from + stripe.shardBytes);
    }
  }

  /** The leaf list of a stripe. The pieces of a stripe share one request. */
  leavesOf(stripe: number): Promise<Uint8Array> {
    const { manifest, memory } = this.#options;
    let leaves = this.#leaves.get(stripe);
    if (!leaves) {
      const { signal } = this.#abort;
      const shape = { ...leafShape(manifest, stripe), from: 0 };
      const read = (): Promise<Uint8Array> => this.#read(shape, signal, LEAF_LIST).then(({ data }) => data[0]!);
      leaves = memory?.read([`${manifest.version}/${stripe}`], shape.shardBytes, read, signal) ?? read();
      this.#leaves.set(stripe, leaves);
    }
    return leaves;
  }

  /** Reads the wanted part of one stripe, as pieces in order. */
  async #stripe(stripe: StripeShape): Promise<Uint8Array[]> {
    const { manifest, memory } = this.#options;
    const stripes = HAS_STORE && this.#options.stripes;
    if (!memory || stripes || !isSmall(manifest)) return this.#cut(stripe, await this.#shared(stripe));
    const read = (): Promise<Uint8Array> => this.#shared(stripe).then(concat);
    const name = wholeName(manifest);
    const whole = await memory.read([name], manifest.k * stripe.shardBytes, read, this.#abort.signal);
    return [whole.subarray(this.#range.start, this.#range.end)];
  }

  /** The data shards of a stripe, by this read or by another one. */
  async #shared(stripe: StripeShape): Promise<readonly Uint8Array[]> {
    const share = HAS_STORE ? this.#options.share : undefined;
    const { signal } = this.#abort;
    if (!share) return (await this.#read(stripe, signal)).data;
    let isOwn = false;
    const readOwn = (shared: AbortSignal): Promise<StripeData> => {
      isOwn = true;
      return this.#read(stripe, shared);
    };
    const read = await share(stripe.index, readOwn, signal);
    if (!isOwn) {
      // What another read did for this one counts for both.
      this.report.requests.push(...(read.made?.() ?? []));
      add(this.report.decoding, read.decoding);
    }
    return read.data;
  }

  /** Reads a stripe, or of a part of it the chunk `wanted`. */
  async #read(stripe: StripeShape | StripePart, signal: AbortSignal, wanted?: number): Promise<StripeData> {
    const { sources, clock, onRequest } = this.#options;
    const leaves = wanted === LEAF_LIST;
    // Every copy of the leaf list is the same: it takes one.
    const manifest = { ...this.#options.manifest, ...(leaves && { k: 1, m: LEAF_LIST }) };
    const isWhole = stripe.shardBytes === stripeShape(this.#options.manifest, stripe.index).shardBytes && !leaves;
    const plan = (options: Omit<PlanOptions, "leaves">): Candidate[] =>
      planStripe(manifest, stripe.index, sources, { ...options, leaves }).filter(
        ({ chunk, source: { servesParts } }) =>
          wanted === undefined || (servesParts === "wanted" ? chunk === wanted : isWhole || servesParts),
      );
    const decoding = { ms: 0, shards: 0 };
    const inline = inlineBytes(manifest);
    if (inline) return { data: [inline], decoding };
    const codec = async (): Promise<Decoder> => timed(await this.#options.codec(), clock, decoding);
    try {
      const candidates = plan({ failed: this.#failedLately(), random: this.#sameRandom() });
      const shards = await readStripe({
        ...this.#options,
        manifest,
        stripe,
        wanted,
        // Without the leaves, a piece costs its whole shard.
        narrow: leaves ? undefined : this.#options.narrow,
        lastStripe: wanted === undefined ? this.#endStripe - 1 : stripe.index,
        candidates,
        further: sources.flatMap(({ updated }) => (updated ? [updated.then(() => plan({ random: () => 0 }))] : [])),
        codec,
        signal,
        onRequest: (record) => {
          this.#observe(record);
          onRequest?.(record);
        },
      });
      const data = await dataShards(manifest.k, shards, codec, wanted === undefined ? undefined : [wanted]);
      add(this.report.decoding, decoding);
      const made = (): RequestRecord[] => this.report.requests.filter((request) => request.stripe === stripe.index);
      return { data, decoding, ...(HAS_STORE && { made }) };
    } finally {
      // Other pieces of the stripe may still be on their way.
      if (wanted === undefined) for (const source of sources) source.release?.(stripe.index);
    }
  }

  /**
   * Returns the same numbers for each stripe: all choose alike among equals, so that one request serves many stripes.
   */
  #sameRandom(): Random {
    let at = 0;
    return () => (this.#draws[at++] ??= this.#options.random());
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

  #observe(record: RequestRecord): void {
    if (record.outcome === "pending") this.report.requests.push(record);
    if (isFault(record)) this.#failedAtMs.set(record.source, this.#options.clock.now());
  }

  #failedLately(): Set<string> {
    const sinceMs = this.#options.clock.now() - AVOID_FAILED_MS;
    return new Set([...this.#failedAtMs].filter(([, atMs]) => atMs > sinceMs).map(([source]) => source));
  }

  /** Ends the read, once. With a reason, it aborts all requests and errors the stream. */
  finish(reason?: unknown): void {
    if (this.report.endMs !== undefined) return;
    this.report.endMs = this.#options.clock.now();
    this.#detach();
    if (reason !== undefined) {
      this.#abort.abort(reason);
      this.#sink?.error(reason);
    }
    for (const source of this.#options.sources) source.close?.();
    this.#options.onEnd?.(this.report, reason);
  }
}

function add(sum: Decoding, { ms, shards }: Decoding): void {
  sum.ms += ms;
  sum.shards += shards;
}

/** Wraps `decoder` so that it adds its work to `spent`. */
function timed(decoder: Decoder, clock: Clock, spent: Decoding): Decoder {
  return {
    reconstruct(k, shards, wanted) {
      const startMs = clock.now();
      const decoded = decoder.reconstruct(k, shards, wanted);
      add(spent, { ms: clock.now() - startMs, shards: wanted.length });
      return decoded;
    },
  };
}
