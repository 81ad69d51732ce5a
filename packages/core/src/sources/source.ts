/**
 * Sources: where chunks come from. The reader knows nothing of KV, S3 or bundles, only this.
 */
import type { LatencyEstimate } from "../latency.ts";
import type { StripeShape } from "../format/manifest.ts";

/** `edge`: the cache of the PoP that answers; `peer`: another PoP's cache; `region`: a bucket. */
export type SourceKind = "edge" | "peer" | "region";

export interface ChunkSource {
  /** Name of the PoP or region, unique within one read. */
  readonly id: string;
  readonly kind: SourceKind;
  /** Time to deliver one chunk as believed now; read again for each stripe. */
  readonly latency: LatencyEstimate;
  /** Whether it is worth asking this source for the chunk. */
  has(stripe: number, chunk: number): boolean;
  /**
   * Settles when `has`, of this source or of others, may know of other chunks than before. A read that was planned without
   * them takes them in: of the edge all, which are under way without having been asked for; of a peer those that it would
   * deliver before what is under way.
   */
  readonly updated?: Promise<void> | undefined;
  /** Grows whenever something comes of it: a stripe is not given up while its sources send. */
  readonly progress?: number;
  /**
   * The shard of `chunk` in `stripe`: exactly `stripe.shardBytes` bytes, not yet verified. Rejects with CHUNK_MISSING,
   * CHUNK_WRONG_LENGTH or SOURCE_FAILED, or with the signal's reason once that aborts.
   */
  fetch(request: ChunkRequest): Promise<Uint8Array>;
  /** Tells that nothing more of this stripe will be asked for, so that what is buffered for it can go. */
  release?(stripe: number): void;
  /** Tells that the read is over. What others wait for (shared stripes) may still go on. */
  close?(): void;
}

export interface ChunkRequest {
  readonly stripe: StripeShape;
  readonly chunk: number;
  readonly signal: AbortSignal;
  /** The last stripe that the read is going to want: a source may fetch ahead. Default: this one alone. */
  readonly lastStripe?: number;
  /** A source that lets requests wait for a turn calls it when that has come. */
  readonly onStart?: () => void;
}
