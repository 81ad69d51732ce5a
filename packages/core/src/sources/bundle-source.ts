/** The cache of the PoP that answers as a source: its chunks come in a bundle, which may still be under way. */
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import type { LatencyEstimate } from "../latency.ts";
import { ShardStream, type Frames, type ShardName } from "./shard-stream.ts";
import type { ChunkRequest, ChunkSource } from "./source.ts";

/** Dependencies of a BundleSource. */
export interface BundleSourceOptions {
  readonly id: string;
  /** Time to deliver one chunk as believed now. */
  readonly latency: () => LatencyEstimate;
  /** Chunks that the PoP caches: as believed at first, and as its plan says once `frames` is there. */
  readonly cached: () => readonly number[];
  /** Whether the bundle is of a small range: it has the leaf lists and the wanted blocks, and not whole shards. */
  readonly servesParts?: "wanted" | undefined;
  /** The frames behind the plan. They may be pending: a read asks the buckets at the same moment as the PoP. */
  readonly frames: Promise<Frames>;
}

/** The chunks that a PoP has cached, as they arrive in its bundle. */
export class BundleSource implements ChunkSource {
  readonly id: string;
  readonly kind = "edge";
  readonly updated: Promise<boolean>;
  readonly servesParts: "wanted" | undefined;
  readonly #latency: () => LatencyEstimate;
  readonly #cached: () => readonly number[];
  readonly #shards: ShardStream;

  constructor({ id, latency, cached, frames, servesParts }: BundleSourceOptions) {
    this.id = id;
    this.servesParts = servesParts;
    this.#latency = latency;
    this.#cached = cached;
    this.#shards = new ShardStream(frames, (shard) => notCached(id, shard));
    this.updated = frames.then(
      () => {
        this.#shards.rejectMissing(({ chunk }) => !cached().includes(chunk));
        return true;
      },
      // A failed bundle rejects the requests for its chunks. A read that needs none of them continues.
      () => false,
    );
  }

  get latency(): LatencyEstimate {
    return this.#latency();
  }

  get progress(): number {
    return this.#shards.progress;
  }

  has(_stripe: number, chunk: number): boolean {
    return this.#cached().includes(chunk);
  }

  fetch({ stripe, chunk, signal, onPart }: ChunkRequest): Promise<Uint8Array> {
    return this.#shards.take({ stripe: stripe.index, chunk }, signal, onPart);
  }

  release(stripe: number): void {
    this.#shards.release(stripe);
  }

  close(): void {
    this.#shards.close(new AgaroseError("ABORTED", HAS_MESSAGES && "the bundle was closed"));
  }
}

function notCached(pop: string, { stripe, chunk }: ShardName): AgaroseError {
  return new AgaroseError(
    "CHUNK_MISSING",
    HAS_MESSAGES && `PoP ${pop} does not cache chunk ${chunk} of stripe ${stripe} any more`,
    { stripe, chunk },
  );
}
