/**
 * A region's bucket as a source: for each chunk one GET for all stripes that a read wants of it, as long as the region keeps
 * up. A chunk is the concatenation of its shards, so that is one range, and every shard but the first comes without a round
 * trip of its own.
 */
import { BodyReader, checkedLength, expectEnd } from "./body.ts";
import { BundleSource, type Frames } from "./bundle-source.ts";
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { chunkName, objectUrl } from "../format/key.ts";
import { hedgeAfterMs, type LatencyEstimate } from "../latency.ts";
import { chunkBytes, stripeShape, type Manifest, type StripeShape } from "../format/manifest.ts";
import type { Clock, FetchPort } from "../ports.ts";
import type { ChunkRequest, ChunkSource } from "./source.ts";

export interface RegionSourceOptions {
  readonly manifest: Manifest;
  readonly region: {
    readonly name: string;
    /** Base URL that objects are below. */
    readonly url: string;
  };
  readonly latency: () => LatencyEstimate;
  readonly fetch: FetchPort;
  readonly clock: Clock;
  /**
   * Told how long each GET took until its first shard was there, and `Infinity` for one that failed (not for one that was
   * aborted).
   */
  readonly onLatency?: (ms: number) => void;
}

/**
 * Object bytes that one GET is for at most: so many are under way in the network's buffers when a consumer stops. Ten GETs
 * of a tenth each cost a round trip every so many bytes.
 */
export const SPAN_BYTES_MAX = 64 * 1024 * 1024;

/** Overtaken shards that a GET may have to read past: that takes less than a new round trip, as long as they are few. */
const OVERTAKEN_MAX = 4;

/** One GET under way: the shards of a chunk from one stripe to another. */
interface Stream {
  /** Hands them out. */
  readonly shards: BundleSource;
  readonly abort: AbortController;
  readonly firstStripe: number;
  readonly lastStripe: number;
  /** The stripe that whoever comes next has to want. */
  nextStripe: number;
  /** Whether nobody is to come any more. */
  isClosed: boolean;
}

export class RegionSource implements ChunkSource {
  readonly id: string;
  readonly kind = "region";
  progress = 0;
  readonly #options: RegionSourceOptions;
  /** By chunk. */
  readonly #streams = new Map<number, Stream>();
  #isClosed = false;

  constructor(options: RegionSourceOptions) {
    this.id = options.region.name;
    this.#options = options;
  }

  get latency(): LatencyEstimate {
    return this.#options.latency();
  }

  has(_stripe: number, chunk: number): boolean {
    return this.#options.manifest.placement[chunk] === this.id;
  }

  async fetch(request: ChunkRequest): Promise<Uint8Array> {
    const { clock, onLatency } = this.#options;
    const { stripe, chunk, signal } = request;
    const open = this.#streams.get(chunk);
    const stream = open && continuesWith(open, stripe.index) ? open : this.#open(request);
    const isFirst = stream !== open;
    const startMs = onLatency ? clock.now() : 0;
    stream.nextStripe = stripe.index + 1;
    try {
      const shard = await stream.shards.fetch(request);
      if (isFirst) onLatency?.(clock.now() - startMs);
      return shard;
    } catch (error) {
      if (!signal.aborted) {
        stream.isClosed = true;
        // What was cut off in the middle (a server ends a body that nobody reads for long) is asked for anew.
        if (!isFirst && stream.shards.progress > 0) return this.fetch(request);
        if (isFirst) onLatency?.(Number.POSITIVE_INFINITY);
        throw error;
      }
      // An abort says how late the source was at least, which is how a source that turned slow is noticed.
      const ms = onLatency ? clock.now() - startMs : 0;
      if (onLatency && ms > hedgeAfterMs(this.latency)) onLatency(ms);
      throw signal.reason;
    } finally {
      if (this.#isClosed) stream.isClosed = true;
      // What was overtaken may be of use to the stripes that come still; without any, it ends.
      if (stream.isClosed || stream.nextStripe > stream.lastStripe) endUnwanted(stream);
    }
  }

  /** Ends what was opened for stripes after `stripe` in vain: they would have been asked for by now. */
  release(stripe: number): void {
    for (const stream of this.#streams.values()) {
      stream.shards.release(stripe);
      if (isAt(stream, stripe)) close(stream);
    }
  }

  /** Ends every GET that nobody waits for any more. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#streams.values()) close(stream);
  }

  /**
   * A stream from the stripe asked for to the last one of the read, in place of the one before; to that stripe alone when
   * later ones have been asked for already.
   */
  #open({ stripe, chunk, lastStripe = stripe.index }: ChunkRequest): Stream {
    const before = this.#streams.get(chunk);
    const isStraggler = before && !before.isClosed && stripe.index < before.nextStripe;
    const spanStripes = isStraggler ? 1 : Math.max(1, Math.floor(SPAN_BYTES_MAX / this.#options.manifest.stripeBytes));
    const last = Math.min(lastStripe, stripe.index + spanStripes - 1);
    const abort = new AbortController();
    const frames = this.#frames(chunk, stripe, last, abort.signal);
    const stream = {
      shards: new BundleSource({ id: this.id, latency: () => this.latency, cached: () => [chunk], frames }),
      abort,
      firstStripe: stripe.index,
      lastStripe: last,
      nextStripe: 0,
      isClosed: false,
    };
    if (isStraggler) return stream;
    if (before) close(before);
    this.#streams.set(chunk, stream);
    return stream;
  }

  /** The shards from stripe `from` to stripe `last` as they come. */
  async #frames(chunk: number, from: StripeShape, last: number, signal: AbortSignal): Promise<Frames> {
    const { manifest } = this.#options;
    const body = await this.#get(chunk, from, stripeShape(manifest, last), signal);
    const what = `region ${this.id}, chunk ${chunk}`;
    let stripe = from.index;
    return {
      next: async () => {
        const { shardBytes } = stripeShape(manifest, stripe);
        const payload = checkedLength(await body.read(shardBytes), shardBytes, what);
        if (stripe === last) await expectEnd(body, shardBytes, what);
        return { type: "chunk", stripe: stripe++, chunk, payload };
      },
      cancel: () => body.cancel(),
    };
  }

  async #get(chunk: number, from: StripeShape, to: StripeShape, signal: AbortSignal): Promise<BodyReader> {
    const { manifest, region, fetch } = this.#options;
    const url = objectUrl(region.url, chunkName(manifest.key, manifest.version, chunk));
    const end = to.chunkOffset + to.shardBytes;
    const isWhole = from.chunkOffset === 0 && end === chunkBytes(manifest);
    const headers: Record<string, string> = isWhole ? {} : { range: `bytes=${from.chunkOffset}-${end - 1}` };
    const { status, body } = await fetch(url, { headers, signal }).catch((error: unknown) => {
      throw new AgaroseError(
        "SOURCE_FAILED",
        HAS_MESSAGES && `region ${region.name} did not answer`,
        { region: region.name },
        error,
      );
    });
    if (status === (isWhole ? 200 : 206)) return new BodyReader(body, () => this.progress++);
    await body?.cancel();
    throw new AgaroseError(
      status === 404 ? "CHUNK_MISSING" : "SOURCE_FAILED",
      HAS_MESSAGES && `region ${this.id} answered ${status} for chunk ${chunk}`,
      {
        region: this.id,
        status,
      },
    );
  }
}

/** Whether `stripe` is the next one that has not been asked for. */
function isAt({ isClosed, nextStripe, lastStripe }: Stream, stripe: number): boolean {
  return !isClosed && stripe === nextStripe && stripe <= lastStripe;
}

/** Whether the stream is at `stripe`, and near enough to it to be asked for its shard. */
function continuesWith(stream: Stream, stripe: number): boolean {
  const { firstStripe, shards } = stream;
  return isAt(stream, stripe) && stripe - firstStripe - shards.progress - shards.awaited <= OVERTAKEN_MAX;
}

/** Takes no more shards, and ends the request once nobody waits for one. */
function close(stream: Stream): void {
  stream.isClosed = true;
  endUnwanted(stream);
}

function endUnwanted({ shards, abort }: Stream): void {
  if (shards.awaited === 0) abort.abort();
}
