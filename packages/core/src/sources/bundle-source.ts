/** The cache of the PoP that answers as a source: its chunks come in a bundle, which may still be under way. */
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import type { LatencyEstimate } from "../latency.ts";
import { ShardStream, type Frames } from "./shard-stream.ts";
import type { ChunkSource } from "./source.ts";

/** Dependencies of a bundle source. */
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
export function bundleSource({ id, latency, cached, frames, servesParts }: BundleSourceOptions): Required<ChunkSource> {
  const shards = new ShardStream(
    frames,
    ({ stripe, chunk }) =>
      new AgaroseError(
        "CHUNK_MISSING",
        HAS_MESSAGES && `PoP ${id} does not cache chunk ${chunk} of stripe ${stripe} any more`,
        { stripe, chunk },
      ),
  );
  return {
    id,
    kind: "edge",
    servesParts,
    get latency() {
      return latency();
    },
    get progress() {
      return shards.progress;
    },
    updated: frames.then(
      () => {
        shards.rejectMissing(({ chunk }) => !cached().includes(chunk));
        return true;
      },
      // A failed bundle rejects the requests for its chunks. A read that needs none of them continues.
      () => false,
    ),
    has: (_stripe, chunk) => cached().includes(chunk),
    fetch: ({ stripe, chunk, signal, onPart }) => shards.take({ stripe: stripe.index, chunk }, signal, onPart),
    release: (stripe) => shards.release(stripe),
    close: () => shards.close(new AgaroseError("ABORTED", HAS_MESSAGES && "the bundle was closed")),
  };
}
