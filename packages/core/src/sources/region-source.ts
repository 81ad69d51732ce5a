/**
 * A region's bucket as a source. One GET for each chunk covers all that a read wants of it while the region keeps up.
 * A chunk is the concatenation of its shards, so that GET asks for one range, and only its first part costs a round
 * trip.
 */
import { BodyReader, refuseChunk } from "./body.ts";
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { objectUrl } from "../format/key.ts";
import type { LatencyEstimate } from "../latency.ts";
import {
  chunkBytes,
  chunkNameOf,
  chunkRegions,
  CHUNKS_MAX,
  LEAF_LIST,
  stripeShape,
  type Manifest,
} from "../format/manifest/index.ts";
import type { FetchPort } from "../ports.ts";
import { PartStream } from "./part-stream.ts";
import { UNWANTED, type ChunkRequest, type ChunkSource } from "./source.ts";

/** Dependencies of a RegionSource. */
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

/** How many unwanted parts a GET may read past. Reading past a few is faster than a new round trip. */
const OVERTAKEN_MAX = 4;

/** One GET under way: a chunk from one byte to another. */
interface Stream {
  readonly parts: PartStream;
  readonly abort: AbortController;
  /** Whether it accepts no more requests. */
  isClosed: boolean;
}

/** The chunks that a manifest puts in one region, read from its bucket. */
export class RegionSource implements ChunkSource {
  readonly id: string;
  readonly kind = "region";
  readonly servesParts = true;
  progress = 0;
  readonly #options: RegionSourceOptions;
  /** By chunk. */
  readonly #regions: readonly string[];
  /** By chunk. */
  readonly #streams = new Map<number, Stream>();
  #isClosed = false;

  constructor(options: RegionSourceOptions) {
    this.id = options.region.name;
    this.#options = options;
    this.#regions = chunkRegions(options.manifest);
  }

  get latency(): LatencyEstimate {
    return this.#options.latency();
  }

  has(_stripe: number, chunk: number): boolean {
    const { manifest } = this.#options;
    return chunk === LEAF_LIST ? (manifest.leaves ?? []).includes(this.id) : this.#regions[chunk] === this.id;
  }

  async fetch(request: ChunkRequest): Promise<Uint8Array> {
    const { stripe, chunk, signal } = request;
    const open = this.#streams.get(chunk);
    const stream = open && continuesWith(open, request) ? open : this.#open(request);
    if (stream === open) request.onFollow?.();
    const { parts } = stream;
    try {
      return await parts.take(stripe.shardBytes, request);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      stream.isClosed = true;
      // A server may end a body that is not read for long: ask once more from here.
      if (stream === open && parts.progress > 0) return this.fetch(request);
      throw error;
    } finally {
      if (this.#isClosed) stream.isClosed = true;
      // Later requests may still use this GET, which is cancelled if there are none.
      if (stream.isClosed || parts.next >= parts.end) endUnwanted(stream);
    }
  }

  /** Ends the GETs that come to `stripe` next: the read has finished it without them. */
  release(stripe: number): void {
    const { chunkOffset } = stripeShape(this.#options.manifest, stripe);
    for (const stream of this.#streams.values()) if (stream.parts.next === chunkOffset) close(stream);
  }

  /** Ends every GET without a waiting request, and the others after their last one. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#streams.values()) close(stream);
  }

  /**
   * Opens a stream from the request to the end of what the read wants of its chunk, which replaces the chunk's stream.
   * A request for what was passed gets its own stream.
   */
  #open({ stripe, chunk, until = 0 }: ChunkRequest): Stream {
    const { manifest } = this.#options;
    const { chunkOffset, shardBytes } = stripe;
    const before = this.#streams.get(chunk);
    const isStraggler = before && !before.isClosed && chunkOffset < before.parts.next;
    const first = stripeShape(manifest, stripe.index).chunkOffset;
    const span = Math.max(1, Math.floor(SPAN_BYTES_MAX / manifest.stripeBytes)) * stripeShape(manifest, 0).shardBytes;
    const partEnd = chunkOffset + shardBytes;
    const end = isStraggler ? partEnd : Math.max(partEnd, Math.min(until, first + span));
    const abort = new AbortController();
    const open = (onPart: (bytes: number) => void): Promise<BodyReader> =>
      this.#get(chunk, chunkOffset, end, abort.signal, (bytes) => {
        this.progress++;
        onPart(bytes);
      });
    const what = HAS_MESSAGES && `region ${this.id}, chunk ${chunk}`;
    const stream = { parts: new PartStream(chunkOffset, end, open, what), abort, isClosed: false };
    if (isStraggler) return stream;
    if (before) close(before);
    this.#streams.set(chunk, stream);
    return stream;
  }

  async #get(
    chunk: number,
    start: number,
    end: number,
    signal: AbortSignal,
    onPart: (bytes: number) => void,
  ): Promise<BodyReader> {
    const { manifest, region, fetch } = this.#options;
    const url = objectUrl(region.url, chunkNameOf(manifest, chunk));
    const isWhole = start === 0 && end === chunkBytes(manifest) && chunk < CHUNKS_MAX;
    const headers: Record<string, string> = isWhole ? {} : { range: `bytes=${start}-${end - 1}` };
    const response = await fetch(url, { headers, signal }).catch((error: unknown) => {
      throw new AgaroseError(
        "SOURCE_FAILED",
        HAS_MESSAGES && `region ${this.id} did not answer`,
        { region: this.id },
        error,
      );
    });
    if (response.status === (isWhole ? 200 : 206)) return new BodyReader(response.body, onPart);
    return refuseChunk(response, HAS_MESSAGES && `region ${this.id}, chunk ${chunk}`);
  }
}

/** Whether a request is faster on this stream than by a new GET. */
function continuesWith({ isClosed, parts }: Stream, { stripe: { chunkOffset, shardBytes } }: ChunkRequest): boolean {
  if (isClosed || chunkOffset !== parts.next || chunkOffset + shardBytes > parts.end) return false;
  return parts.overtaken <= OVERTAKEN_MAX;
}

/** Accepts no more requests, and ends the GET when no request waits. */
function close(stream: Stream): void {
  stream.isClosed = true;
  endUnwanted(stream);
}

function endUnwanted({ parts, abort }: Stream): void {
  if (parts.awaited === 0) abort.abort(UNWANTED);
}
