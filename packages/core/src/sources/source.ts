/** Sources: where chunks come from. This interface is all that the reader knows of KV, S3 or bundles. */
import type { LatencyEstimate } from "../latency.ts";
import type { StripePart, StripeShape } from "../format/manifest/index.ts";

/** `edge`: the cache of the PoP that answers; `peer`: the cache of a different PoP; `region`: a bucket. */
export type SourceKind = "edge" | "peer" | "region";

/**
 * Why a request is aborted that nobody waits for any more. By default the reason is an error, which keeps in memory
 * what was on the stack when it was made: a stripe with its shards.
 */
export const UNWANTED = 0;

/** One place that serves chunks of one object. */
export interface ChunkSource {
  /** Name of the PoP or region, unique within one read. */
  readonly id: string;
  readonly kind: SourceKind;
  /** Time to deliver one chunk as believed now. The reader asks for it before each stripe. */
  readonly latency: LatencyEstimate;
  /** Which parts of shards it serves (`StripePart`): any, those of the wanted chunk, or none (default). */
  readonly servesParts?: boolean | "wanted" | undefined;
  /** Whether this source is believed to hold the chunk. */
  has(stripe: number, chunk: number): boolean;
  /**
   * Resolves when this or another source may hold more chunks than when the read was planned. The read then adds the
   * edge's new chunks, which are on their way already, and a peer's if they would arrive sooner than what is pending.
   * Resolves to false if nothing more will come because the source failed.
   */
  readonly updated?: Promise<boolean | void> | undefined;
  /** Grows whenever the source sends something: a stripe does not time out while one of its sources sends. */
  readonly progress?: number;
  /**
   * Returns the shard of `chunk` in `stripe`: exactly `stripe.shardBytes` bytes, not verified. Rejects with
   * CHUNK_MISSING, CHUNK_WRONG_LENGTH, SOURCE_FAILED or, when the signal aborts, with its reason.
   */
  fetch(request: ChunkRequest): Promise<Uint8Array>;
  /** The reader calls it when it wants nothing more of this stripe: the source can drop what it keeps for it. */
  release?(stripe: number): void;
  /** The reader calls it at its end. Requests that another read waits for (shared stripes) continue. */
  close?(): void;
}

/** A request for one shard. */
export interface ChunkRequest {
  readonly stripe: StripeShape | StripePart;
  readonly chunk: number;
  readonly signal: AbortSignal;
  /** Where in the chunk, in bytes, the read's wants end: a source can fetch ahead. Default: with this request. */
  readonly until?: number | undefined;
  /** A source with a queue calls it when the request leaves the queue. */
  readonly onStart?: () => void;
  /** A source calls it when the request continues a response that is under way. */
  readonly onFollow?: () => void;
  /** A source that sees the shard's bytes come calls it with the number of each part. */
  readonly onPart?: (bytes: number) => void;
}
