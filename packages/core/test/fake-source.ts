import { AgaroseError } from "../src/errors.ts";
import { LEAF_LIST, type StripePart } from "../src/format/manifest/index.ts";
import type { LatencyEstimate } from "../src/latency.ts";
import type { ChunkRequest, ChunkSource, SourceKind } from "../src/sources/source.ts";
import type { SampleObject } from "./objects/sample-object.ts";
import type { SimulatedClock } from "./simulated-clock.ts";

/** How a fake source reacts to one request. */
export type Behaviour = "serve" | "error" | "missing" | "corrupt" | "truncate" | "lengthen" | "hang";

export interface FakeSourceOptions {
  readonly id: string;
  readonly kind?: SourceKind;
  readonly object: SampleObject;
  readonly clock: SimulatedClock;
  /** Chunks that it has. Default: those placed in the region of its name. */
  readonly chunks?: readonly number[];
  /** Its latency estimate. Default: mean `ms`, spread 0. */
  readonly latency?: LatencyEstimate;
  /** How long a request takes, or a function of the request. Default 100. */
  readonly ms?: number | ((request: ChunkRequest) => number);
  readonly behaviour?: (request: ChunkRequest) => Behaviour;
  /** Which byte of an answer is wrong that is `corrupt`, as a share of its length. Default 1/2. */
  readonly corruptAt?: number;
  readonly updated?: ChunkSource["updated"];
  /** Default: buckets serve any part, and caches none. */
  readonly servesParts?: ChunkSource["servesParts"];
}

/** A source on a simulated clock that records its requests. */
export class FakeSource implements ChunkSource {
  readonly id: string;
  readonly kind: SourceKind;
  readonly servesParts: ChunkSource["servesParts"];
  readonly requests: {
    readonly stripe: number;
    readonly chunk: number;
    readonly bytes: number;
    readonly signal: AbortSignal;
    at: number;
  }[] = [];
  readonly released: number[] = [];
  /** The behaviours other than `serve` that took effect. */
  readonly faults: Behaviour[] = [];
  readonly #options: FakeSourceOptions;

  constructor(options: FakeSourceOptions) {
    this.id = options.id;
    this.kind = options.kind ?? "region";
    this.servesParts = options.servesParts ?? this.kind === "region";
    this.#options = options;
  }

  get updated(): ChunkSource["updated"] {
    return this.#options.updated;
  }

  get latency(): LatencyEstimate {
    const { latency, ms } = this.#options;
    return latency ?? { meanMs: typeof ms === "number" ? ms : 100, sdMs: 0 };
  }

  has(_stripe: number, chunk: number): boolean {
    const { chunks, object } = this.#options;
    if (chunk === LEAF_LIST) return object.manifest.leaves?.includes(this.id) ?? false;
    return chunks ? chunks.includes(chunk) : object.manifest.placement[chunk] === this.id;
  }

  async fetch(request: ChunkRequest): Promise<Uint8Array> {
    const { clock, object, ms = 100, behaviour = () => "serve", corruptAt = 1 / 2 } = this.#options;
    const { stripe, chunk, signal } = request;
    this.requests.push({ stripe: stripe.index, chunk, bytes: stripe.shardBytes, signal, at: clock.now() });
    const now = behaviour(request);
    await clock.sleep(now === "hang" ? 1e9 : typeof ms === "number" ? ms : ms(request), signal);
    if (now !== "serve") this.faults.push(now);
    const { chunkOffset: at, shardBytes } = stripe;
    if (chunk === LEAF_LIST) return answer(now, object.leafList.subarray(at, at + shardBytes), corruptAt);
    const { from = 0 } = stripe as Partial<StripePart>;
    return answer(now, object.shard(stripe.index, chunk).subarray(from, from + stripe.shardBytes), corruptAt);
  }

  release(stripe: number): void {
    this.released.push(stripe);
  }
}

function answer(behaviour: Behaviour, shard: Uint8Array, corruptAt: number): Uint8Array {
  switch (behaviour) {
    case "error":
      throw new TypeError("connection refused");
    case "missing":
      throw new AgaroseError("CHUNK_MISSING", "the fake source lacks the chunk");
    case "corrupt":
      return shard.map((byte, i) => (i === Math.floor(corruptAt * shard.length) ? byte ^ 1 : byte));
    case "truncate":
      return shard.slice(0, -1);
    case "lengthen":
      return new Uint8Array([...shard, 0]);
    default:
      return shard;
  }
}
