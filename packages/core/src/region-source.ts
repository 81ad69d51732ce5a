/**
 * A region's bucket as a source: one GET per shard, of a byte range where the chunk has more than one stripe.
 */
import { readExactly } from "./body.ts";
import { AgaroseError, toAgaroseError } from "./errors.ts";
import { chunkName, objectUrl } from "./key.ts";
import { hedgeAfterMs, type LatencyEstimate } from "./latency.ts";
import { chunkBytes, type Manifest } from "./manifest.ts";
import type { Clock, FetchedResponse, FetchPort } from "./ports.ts";
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
  /** Told how long each chunk took that arrived, and `Infinity` for one that failed (not for one that was aborted). */
  readonly onLatency?: (ms: number) => void;
}

export class RegionSource implements ChunkSource {
  readonly id: string;
  readonly kind = "region";
  readonly #options: RegionSourceOptions;
  readonly #chunkBytes: number;

  constructor(options: RegionSourceOptions) {
    this.id = options.region.name;
    this.#options = options;
    this.#chunkBytes = chunkBytes(options.manifest);
  }

  get latency(): LatencyEstimate {
    return this.#options.latency();
  }

  has(_stripe: number, chunk: number): boolean {
    return this.#options.manifest.placement[chunk] === this.id;
  }

  async fetch({ stripe, chunk, signal }: ChunkRequest): Promise<Uint8Array> {
    const { clock, onLatency } = this.#options;
    const startMs = clock.now();
    try {
      const shard = await this.#get(chunk, stripe.chunkOffset, stripe.shardBytes, signal);
      onLatency?.(clock.now() - startMs);
      return shard;
    } catch (error) {
      if (!signal.aborted) {
        onLatency?.(Number.POSITIVE_INFINITY);
        throw toAgaroseError(error, "SOURCE_FAILED");
      }
      // An abort says how late the source was at least, which is how a source that turned slow is noticed.
      const ms = clock.now() - startMs;
      if (ms > hedgeAfterMs(this.latency)) onLatency?.(ms);
      throw signal.reason;
    }
  }

  async #get(chunk: number, offset: number, bytes: number, signal: AbortSignal): Promise<Uint8Array> {
    const { manifest, region, fetch } = this.#options;
    const url = objectUrl(region.url, chunkName(manifest.key, manifest.version, chunk));
    const whole = bytes === this.#chunkBytes;
    const headers: Record<string, string> = whole ? {} : { range: `bytes=${offset}-${offset + bytes - 1}` };
    const response = await fetch(url, { headers, signal }).catch((error: unknown) => {
      throw new AgaroseError("SOURCE_FAILED", `region ${region.name} did not answer`, { region: region.name }, error);
    });
    if (response.status !== (whole ? 200 : 206)) throw await this.#refused(response, chunk);
    return readExactly(response, bytes, `region ${region.name}, chunk ${chunk}`);
  }

  async #refused(response: FetchedResponse, chunk: number): Promise<AgaroseError> {
    await response.body?.cancel();
    const { status } = response;
    const code = status === 404 ? "CHUNK_MISSING" : "SOURCE_FAILED";
    return new AgaroseError(code, `region ${this.id} answered ${status} for chunk ${chunk}`, {
      region: this.id,
      status,
    });
  }
}
