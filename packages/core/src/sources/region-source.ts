/**
 * A region's bucket as a source. One GET for each chunk covers all stripes that a read wants of it while the region
 * keeps up. A chunk is the concatenation of its shards, so that GET asks for one range, and only its first shard costs
 * a round trip.
 */
import { BodyReader, checkedLength, expectEnd } from "./body.ts";
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { chunkName, objectUrl } from "../format/key.ts";
import type { LatencyEstimate } from "../latency.ts";
import {
  chunkBytes,
  CHUNKS_MAX,
  LEAF_LIST,
  stripeShape,
  type Manifest,
  type StripeShape,
} from "../format/manifest/index.ts";
import type { FetchPort } from "../ports.ts";
import { ShardStream, type Frames, type ShardName } from "./shard-stream.ts";
import type { ChunkRequest, ChunkSource } from "./source.ts";

/** What a RegionSource needs. */
export interface RegionSourceOptions {
  readonly manifest: Manifest;
  readonly region: {
    readonly name: string;
    /** Base URL of its bucket. */
    readonly url: string;
  };
  /** Time to deliver one chunk as believed now. */
  readonly latency: () => LatencyEstimate;
  readonly fetch: FetchPort;
}

/** The most object bytes of one GET. It bounds what is under way in the network's buffers when a consumer stops. */
export const SPAN_BYTES_MAX = 64 * 1024 * 1024;

/** How many unwanted shards a GET may read past. Reading past a few is faster than a new round trip. */
const OVERTAKEN_MAX = 4;

/** One GET under way: the shards of a chunk from one stripe to another. */
interface Stream {
  readonly shards: ShardStream;
  readonly abort: AbortController;
  readonly firstStripe: number;
  readonly lastStripe: number;
  /** The next stripe that this stream delivers. */
  nextStripe: number;
  /** By stripe, who wants to know of the parts that come. */
  readonly onPart: Map<number, ChunkRequest["onPart"]>;
  /** Whether it accepts no more requests. */
  isClosed: boolean;
}

/** The chunks that a placement puts in one region, read from its bucket. */
export class RegionSource implements ChunkSource {
  readonly id: string;
  readonly kind = "region";
  readonly servesParts = true;
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
    const { leaves, placement } = this.#options.manifest;
    return chunk === LEAF_LIST ? (leaves ?? []).includes(this.id) : placement[chunk] === this.id;
  }

  async fetch(request: ChunkRequest): Promise<Uint8Array> {
    const { stripe, chunk, signal } = request;
    const open = this.#streams.get(chunk);
    const stream = open && continuesWith(open, stripe.index) ? open : this.#open(request);
    stream.nextStripe = stripe.index + 1;
    stream.onPart.set(stripe.index, request.onPart);
    try {
      return await stream.shards.take({ stripe: stripe.index, chunk }, signal);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      stream.isClosed = true;
      // A server may end a body that is not read for long: ask once more from here.
      if (stream === open && stream.shards.progress > 0) return this.fetch(request);
      throw error;
    } finally {
      stream.onPart.delete(stripe.index);
      if (this.#isClosed) stream.isClosed = true;
      // Later stripes may still use this GET. Without any, it ends.
      if (stream.isClosed || stream.nextStripe > stream.lastStripe) endUnwanted(stream);
    }
  }

  /** Ends the GETs whose next stripe is `stripe`: the read has finished it without them. */
  release(stripe: number): void {
    for (const stream of this.#streams.values()) {
      stream.shards.release(stripe);
      if (isAt(stream, stripe)) close(stream);
    }
  }

  /** Ends every GET without a waiting request, and the others after their last one. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#streams.values()) close(stream);
  }

  /**
   * Opens a stream from the requested stripe to the last one of the read, which replaces the chunk's stream. A request
   * for a stripe that was passed gets a stream for that stripe alone.
   */
  #open({ stripe, chunk, lastStripe = stripe.index }: ChunkRequest): Stream {
    const before = this.#streams.get(chunk);
    const isStraggler = before && !before.isClosed && stripe.index < before.nextStripe;
    const spanStripes = isStraggler ? 1 : Math.max(1, Math.floor(SPAN_BYTES_MAX / this.#options.manifest.stripeBytes));
    const last = Math.min(lastStripe, stripe.index + spanStripes - 1);
    const abort = new AbortController();
    const onPart: Stream["onPart"] = new Map();
    const frames = this.#frames(chunk, stripe, last, onPart, abort.signal);
    const stream = {
      shards: new ShardStream(frames, (shard) => this.#missing(shard)),
      abort,
      firstStripe: stripe.index,
      lastStripe: last,
      nextStripe: 0,
      onPart,
      isClosed: false,
    };
    if (isStraggler) return stream;
    if (before) close(before);
    this.#streams.set(chunk, stream);
    return stream;
  }

  /** The shards from stripe `from` to stripe `last`, as frames. */
  async #frames(
    chunk: number,
    from: StripeShape,
    last: number,
    onPart: Stream["onPart"],
    signal: AbortSignal,
  ): Promise<Frames> {
    const { manifest } = this.#options;
    // The first one may be a part of its shard.
    const shapeOf = (stripe: number): StripeShape => (stripe === from.index ? from : stripeShape(manifest, stripe));
    let stripe = from.index;
    const body = await this.#get(chunk, from, shapeOf(last), signal, (bytes) => {
      this.progress++;
      onPart.get(stripe)?.(bytes);
    });
    const what = HAS_MESSAGES && `region ${this.id}, chunk ${chunk}`;
    return {
      next: async () => {
        const { shardBytes } = shapeOf(stripe);
        const payload = checkedLength(await body.read(shardBytes), shardBytes, what);
        if (stripe === last) await expectEnd(body, shardBytes, what);
        return { type: "chunk", stripe: stripe++, chunk, payload };
      },
      cancel: () => body.cancel(),
    };
  }

  async #get(
    chunk: number,
    from: StripeShape,
    to: StripeShape,
    signal: AbortSignal,
    onPart: (bytes: number) => void,
  ): Promise<BodyReader> {
    const { manifest, region, fetch } = this.#options;
    const url = objectUrl(region.url, chunkName(manifest.key, manifest.upload, chunk));
    const end = to.chunkOffset + to.shardBytes;
    const isWhole = from.chunkOffset === 0 && end === chunkBytes(manifest) && chunk < CHUNKS_MAX;
    const headers: Record<string, string> = isWhole ? {} : { range: `bytes=${from.chunkOffset}-${end - 1}` };
    const { status, body } = await fetch(url, { headers, signal }).catch((error: unknown) => {
      throw new AgaroseError(
        "SOURCE_FAILED",
        HAS_MESSAGES && `region ${region.name} did not answer`,
        { region: region.name },
        error,
      );
    });
    if (status === (isWhole ? 200 : 206)) return new BodyReader(body, onPart);
    await body?.cancel();
    throw new AgaroseError(
      status === 404 ? "CHUNK_MISSING" : "SOURCE_FAILED",
      HAS_MESSAGES && `region ${this.id} answered ${status} for chunk ${chunk}`,
      { region: this.id, status },
    );
  }

  #missing({ stripe, chunk }: ShardName): AgaroseError {
    return new AgaroseError(
      "CHUNK_MISSING",
      HAS_MESSAGES && `region ${this.id} did not send chunk ${chunk} of stripe ${stripe}`,
      { region: this.id, stripe, chunk },
    );
  }
}

/** Whether the stream accepts requests and `stripe` is its next one. */
function isAt({ isClosed, nextStripe, lastStripe }: Stream, stripe: number): boolean {
  return !isClosed && stripe === nextStripe && stripe <= lastStripe;
}

/** Whether a request for `stripe` is faster on this stream than by a new GET. */
function continuesWith(stream: Stream, stripe: number): boolean {
  const { firstStripe, shards } = stream;
  return isAt(stream, stripe) && stripe - firstStripe - shards.progress - shards.awaited <= OVERTAKEN_MAX;
}

/** Accepts no more requests, and ends the GET when no request waits. */
function close(stream: Stream): void {
  stream.isClosed = true;
  endUnwanted(stream);
}

function endUnwanted({ shards, abort }: Stream): void {
  if (shards.awaited === 0) abort.abort();
}
