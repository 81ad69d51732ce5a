/**
 * A region's bucket as a source: for each chunk one GET for all stripes that a read wants of it, as long as the region keeps
 * up (`chunk-stream.ts`).
 */
import { BodyReader } from "./body.ts";
import { ChunkStream } from "./chunk-stream.ts";
import { AgaroseError, toAgaroseError } from "./errors.ts";
import { chunkName, objectUrl } from "./key.ts";
import { hedgeAfterMs, type LatencyEstimate } from "./latency.ts";
import { chunkBytes, stripeShape, type Manifest, type StripeShape } from "./manifest.ts";
import type { Clock, FetchPort } from "./ports.ts";
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

export class RegionSource implements ChunkSource {
  readonly id: string;
  readonly kind = "region";
  received = 0;
  readonly #options: RegionSourceOptions;
  /** By chunk. */
  readonly #streams = new Map<number, ChunkStream>();
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
    const stream = open?.continuesWith(stripe.index) ? open : this.#open(request);
    const isFirst = stream !== open;
    const startMs = onLatency ? clock.now() : 0;
    try {
      const shard = await stream.take(stripe, signal);
      if (isFirst) onLatency?.(clock.now() - startMs);
      return shard;
    } catch (error) {
      if (!signal.aborted) {
        // What was cut off in the middle (a server ends a body that nobody reads for long) is asked for anew.
        if (!isFirst && stream.hasDelivered) return this.fetch(request);
        if (isFirst) onLatency?.(Number.POSITIVE_INFINITY);
        throw toAgaroseError(error, "SOURCE_FAILED");
      }
      // An abort says how late the source was at least, which is how a source that turned slow is noticed.
      const ms = onLatency ? clock.now() - startMs : 0;
      if (onLatency && ms > hedgeAfterMs(this.latency)) onLatency(ms);
      throw signal.reason;
    } finally {
      if (this.#isClosed) stream.close();
    }
  }

  /** Ends what was opened for stripes after `stripe` in vain: they would have been asked for by now. */
  release(stripe: number): void {
    for (const stream of this.#streams.values()) if (stream.isAt(stripe)) stream.close();
  }

  /** Ends every GET that nobody waits for any more. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#streams.values()) stream.close();
  }

  /**
   * A stream from the stripe asked for to the last one of the read, in place of the one before; to that stripe alone when
   * later ones have been asked for already.
   */
  #open({ stripe, chunk, lastStripe = stripe.index }: ChunkRequest): ChunkStream {
    const { manifest } = this.#options;
    const before = this.#streams.get(chunk);
    const isStraggler = before?.isPast(stripe.index) ?? false;
    const spanStripes = isStraggler ? 1 : Math.max(1, Math.floor(SPAN_BYTES_MAX / manifest.stripeBytes));
    const last = Math.min(lastStripe, stripe.index + spanStripes - 1);
    const abort = new AbortController();
    const body = this.#get(chunk, stripe, stripeShape(manifest, last), abort.signal);
    // Whoever waits for a shard is told.
    body.catch(() => {});
    const stream = new ChunkStream(body, abort, stripe.index, last, `region ${this.id}, chunk ${chunk}`);
    if (isStraggler) return stream;
    before?.close();
    this.#streams.set(chunk, stream);
    return stream;
  }

  async #get(chunk: number, from: StripeShape, to: StripeShape, signal: AbortSignal): Promise<BodyReader> {
    const { manifest, region, fetch } = this.#options;
    const url = objectUrl(region.url, chunkName(manifest.key, manifest.version, chunk));
    const end = to.chunkOffset + to.shardBytes;
    const isWhole = from.chunkOffset === 0 && end === chunkBytes(manifest);
    const headers: Record<string, string> = isWhole ? {} : { range: `bytes=${from.chunkOffset}-${end - 1}` };
    const { status, body } = await fetch(url, { headers, signal }).catch((error: unknown) => {
      throw new AgaroseError("SOURCE_FAILED", `region ${region.name} did not answer`, { region: region.name }, error);
    });
    if (status === (isWhole ? 200 : 206)) return new BodyReader(body, () => this.received++);
    await body?.cancel();
    throw new AgaroseError(
      status === 404 ? "CHUNK_MISSING" : "SOURCE_FAILED",
      `region ${this.id} answered ${status} for chunk ${chunk}`,
      {
        region: this.id,
        status,
      },
    );
  }
}
