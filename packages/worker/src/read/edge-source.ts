/** The PoP's own chunk cache as a source of the reader. One KV read delivers all cached chunks of a stripe. */
import { AgaroseError } from "@agarose/core";
import type { StripePart } from "@agarose/core/format";
import { hedgeAfterMs, type ChunkRequest, type ChunkSource, type LatencyEstimate } from "@agarose/core/sources";
import { EDGE_LATENCY } from "../regions/region-latency.ts";
import type { CacheContext, CachedStripe, ChunkCache } from "./chunk-cache.ts";

/** Before any bucket, however near: each GET of a bucket costs money. As late as the cache is. */
const NEAREST: LatencyEstimate = { meanMs: 0, sdMs: 0, lateMs: hedgeAfterMs(EDGE_LATENCY) };

interface EdgeSourceOptions {
  readonly pop: string;
  readonly version: string;
  readonly chunks: readonly number[];
  readonly cache: ChunkCache;
  readonly context: CacheContext;
}

/** Delivers the cached chunks of one version. */
export class EdgeSource implements ChunkSource {
  readonly id: string;
  readonly kind = "edge";
  readonly servesParts = true;
  readonly latency = NEAREST;
  readonly #options: EdgeSourceOptions;
  readonly #chunks: ReadonlySet<number>;
  readonly #stripes = new Map<number, Promise<CachedStripe>>();

  constructor(options: EdgeSourceOptions) {
    this.id = options.pop;
    this.#options = options;
    this.#chunks = new Set(options.chunks);
  }

  has(_stripe: number, chunk: number): boolean {
    return this.#chunks.has(chunk);
  }

  async fetch({ stripe, chunk, signal }: ChunkRequest): Promise<Uint8Array> {
    const { version, chunks, cache, context } = this.#options;
    let reading = this.#stripes.get(stripe.index);
    if (!reading) {
      reading = cache.read(version, stripe.index, chunks, context);
      this.#stripes.set(stripe.index, reading);
    }
    const { frames } = await reading;
    signal.throwIfAborted();
    const frame = frames.find((candidate) => candidate.chunk === chunk);
    const { from = 0 } = stripe as Partial<StripePart>;
    if (frame) return frame.payload.subarray(from, from + stripe.shardBytes);
    throw new AgaroseError("CHUNK_MISSING", `chunk ${chunk} of stripe ${stripe.index} is no longer cached`, {
      stripe: stripe.index,
      chunk,
    });
  }

  release(stripe: number): void {
    this.#stripes.delete(stripe);
  }
}
