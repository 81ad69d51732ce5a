/**
 * The one reader: used by the service worker, by the edge for clients without one, and by `agarose get`.
 *
 * Stripes are read ahead within a bounded window, each by late binding (`stripe-read.ts`), decoded where a data chunk is
 * missing, and handed out in order. A read that cannot be completed errors its stream; it never ends short.
 */
import type { Decoder } from "../codec.ts";
import { AgaroseError, HAS_MESSAGES, toAgaroseError } from "../errors.ts";
import { stripeShape, type Manifest, type StripeShape } from "../format/manifest.ts";
import type { Clock, Random, Sha256 } from "../ports.ts";
import type { ByteRange } from "../http/range.ts";
import { planStripe, type Candidate } from "./read-plan.ts";
import { isFault, type Decoding, type ReadReport, type RequestRecord } from "./read-report.ts";
import type { ChunkSource } from "../sources/source.ts";
import { readStripe, type Hedge } from "./stripe-read.ts";
import { dataShards } from "./stripe-shards.ts";

/** One stripe as it was read. */
export interface StripeData {
  /** The k data shards, padding and all. */
  readonly data: readonly Uint8Array[];
  /** The requests that were made for it. */
  readonly made: () => readonly RequestRecord[];
  readonly decoding: Decoding;
}

/**
 * Reads stripe `stripe` by calling `read`, or hands on what another read of the same version gets by its own `read`. Must
 * reject when `signal` aborts.
 */
export type StripeSharing = (
  stripe: number,
  read: (signal: AbortSignal) => Promise<StripeData>,
  signal: AbortSignal,
) => Promise<StripeData>;

export interface ReadOptions {
  readonly manifest: Manifest;
  readonly sources: readonly ChunkSource[];
  /** Called only when something must be decoded. */
  readonly codec: () => Promise<Decoder>;
  readonly clock: Clock;
  readonly sha256: Sha256;
  readonly random: Random;
  /** The bytes wanted, which the object has; the whole object by default. Only the stripes it touches are read. */
  readonly range?: ByteRange;
  readonly signal?: AbortSignal;
  /** Requests beyond k that each stripe starts with. Default 1. */
  readonly delta?: number;
  /** Whether to ask further sources once the expected time has passed. Default true. */
  readonly hedge?: Hedge;
  /**
   * Object bytes being fetched or waiting for the consumer, counted in whole stripes: at least one, at most
   * `WINDOW_STRIPES_MAX`. A function is asked before each further stripe. Default 16 MiB.
   */
  readonly windowBytes?: number | (() => number);
  /** A stripe of whose sources nothing comes for longer fails with READ_TIMEOUT. Default 30,000 ms. */
  readonly timeoutMs?: number;
  /** Lets concurrent reads of one version share their requests. Default: each read makes its own. */
  readonly share?: StripeSharing;
  /** Told of every request when it starts and when it ends. Must not throw. */
  readonly onRequest?: (record: RequestRecord) => void;
  /** Told once when the read is over: complete, cancelled by its consumer (ABORTED, or its reason), or failed. */
  readonly onEnd?: (report: ReadReport, error?: unknown) => void;
}

export interface ObjectRead {
  readonly body: ReadableStream<Uint8Array>;
  /** Grows while the body is read. */
  readonly report: ReadReport;
}

export const DELTA_DEFAULT = 1;
export const WINDOW_BYTES_DEFAULT = 16 * 1024 * 1024;
/** Small stripes must not make for hundreds of requests at a time. */
export const WINDOW_STRIPES_MAX = 16;
export const STRIPE_TIMEOUT_MS_DEFAULT = 30_000;
/** For so long a source that failed is asked last; then it may have recovered. */
const AVOID_FAILED_MS = 10_000;

/**
 * Starts a read and resolves when its first stripe is ready, so that a read that is bound to fail rejects here
 * (NOT_ENOUGH_CHUNKS, READ_TIMEOUT, ABORTED) rather than in the middle of a body.
 */
export async function openRead(options: ReadOptions): Promise<ObjectRead> {
  const read = new Read(options);
  await read.firstStripe();
  return { body: read.stream(), report: read.report };
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
  /** When each source failed last. */
  readonly #failedAtMs = new Map<string, number>();
  readonly #window: Promise<Uint8Array[]>[] = [];
  readonly #range: ByteRange;
  /** What `random` gave for the first stripe. */
  readonly #draws: number[] = [];
  #nextStripe: number;
  readonly #endStripe: number;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  readonly #detach: () => void;

  constructor(options: ReadOptions) {
    const { manifest, range, signal } = options;
    this.#options = { ...DEFAULTS, ...options };
    this.report = { startMs: options.clock.now(), requests: [], decoding: { ms: 0, shards: 0 } };
    this.#range = range ?? { start: 0, end: manifest.bytes };
    this.#nextStripe = Math.floor(this.#range.start / manifest.stripeBytes);
    this.#endStripe = Math.ceil(this.#range.end / manifest.stripeBytes);
    const onAbort = (): void => this.#finish(toAgaroseError(signal?.reason, "ABORTED"));
    signal?.addEventListener("abort", onAbort);
    this.#detach = () => signal?.removeEventListener("abort", onAbort);
    if (signal?.aborted) onAbort();
  }

  async firstStripe(): Promise<void> {
    this.#fillWindow();
    try {
      this.#abort.signal.throwIfAborted();
      await this.#window[0];
    } catch (cause) {
      const error = toAgaroseError(cause);
      this.#finish(error);
      throw error;
    }
  }

  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: (controller) => this.#pull(controller),
        // A turn later: WebKit (2.50) stops a service worker for good when requests are aborted within this call.
        cancel: (reason) =>
          queueMicrotask(() =>
            this.#finish(reason ?? new AgaroseError("ABORTED", HAS_MESSAGES && "the consumer cancelled")),
          ),
      },
      { highWaterMark: 0 },
    );
  }

  /** Hands over one stripe. Is called when the one before has been consumed, so that both never count twice. */
  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#fillWindow();
    try {
      const parts = (await this.#window.shift()) ?? [];
      for (const part of parts) controller.enqueue(part);
      if (this.#window.length > 0 || this.#nextStripe < this.#endStripe) return;
      controller.close();
      this.#finish();
    } catch (error) {
      this.#finish(toAgaroseError(error));
    }
  }

  #windowStripes(): number {
    const { manifest, windowBytes = WINDOW_BYTES_DEFAULT } = this.#options;
    const bytes = typeof windowBytes === "function" ? windowBytes() : windowBytes;
    return Math.min(WINDOW_STRIPES_MAX, Math.max(1, Math.floor(bytes / manifest.stripeBytes)));
  }

  #fillWindow(): void {
    if (this.#abort.signal.aborted) return;
    while (this.#window.length < this.#windowStripes() && this.#nextStripe < this.#endStripe) {
      const stripe = this.#stripe(stripeShape(this.#options.manifest, this.#nextStripe++));
      // Whoever awaits it sees the failure; until then it must not count as unhandled.
      stripe.catch(() => {});
      this.#window.push(stripe);
    }
  }

  /** The wanted part of one stripe, as pieces in order. */
  async #stripe(stripe: StripeShape): Promise<Uint8Array[]> {
    const { share } = this.#options;
    const { signal } = this.#abort;
    if (!share) return this.#cut(stripe, (await this.#read(stripe, signal)).data);
    let isOwn = false;
    const readOwn = (shared: AbortSignal): Promise<StripeData> => {
      isOwn = true;
      return this.#read(stripe, shared);
    };
    const read = await share(stripe.index, readOwn, signal);
    if (!isOwn) this.#adopt(read);
    return this.#cut(stripe, read.data);
  }

  async #read(stripe: StripeShape, signal: AbortSignal): Promise<StripeData> {
    const { manifest, sources, clock, onRequest } = this.#options;
    const decoding = { ms: 0, shards: 0 };
    const codec = async (): Promise<Decoder> => timed(await this.#options.codec(), clock, decoding);
    try {
      const candidates = planStripe(manifest, stripe.index, sources, {
        failed: this.#failedLately(),
        random: this.#sameRandom(),
      });
      const shards = await readStripe({
        ...this.#options,
        stripe,
        lastStripe: this.#endStripe - 1,
        candidates,
        further: sources.flatMap(({ updated }) => {
          const planned = (): Candidate[] => planStripe(manifest, stripe.index, sources, { random: () => 0 });
          return updated ? [updated.then(planned)] : [];
        }),
        codec,
        signal,
        onRequest: (record) => {
          this.#observe(record);
          onRequest?.(record);
        },
      });
      const data = await dataShards(manifest.k, shards, codec);
      add(this.report.decoding, decoding);
      const made = (): RequestRecord[] => this.report.requests.filter((request) => request.stripe === stripe.index);
      return { data, decoding, made };
    } finally {
      for (const source of sources) source.release?.(stripe.index);
    }
  }

  /** The same numbers for each stripe, so that all choose alike among equals: a source may serve many with one request. */
  #sameRandom(): Random {
    let at = 0;
    return () => (this.#draws[at++] ??= this.#options.random());
  }

  /** Reports what another read did for this one as if it were its own. */
  #adopt(read: StripeData): void {
    this.report.requests.push(...read.made());
    add(this.report.decoding, read.decoding);
  }

  /** Drops the padding and what lies outside the range. */
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

  /** Ends the read once; with a reason, all that is under way is aborted and the stream errors at once. */
  #finish(reason?: unknown): void {
    if (this.report.endMs !== undefined) return;
    this.report.endMs = this.#options.clock.now();
    this.#detach();
    if (reason !== undefined) {
      this.#abort.abort(reason);
      this.#controller?.error(reason);
    }
    for (const source of this.#options.sources) source.close?.();
    this.#options.onEnd?.(this.report, reason);
  }
}

function add(sum: Decoding, { ms, shards }: Decoding): void {
  sum.ms += ms;
  sum.shards += shards;
}

/** `decoder`, which adds what it does to `spent`. */
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
