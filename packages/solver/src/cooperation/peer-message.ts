/**
 * What PoPs say to each other: the chunks that they hold (C2P, ICDCN'15, section 3.2), and once a period their popular
 * keys and their distance to everything else.
 */

import type { CacheMessage } from "./cache-message.ts";
import type { RegionEstimate } from "../options/sources.ts";

/** One message. */
export interface PeerMessage {
  /** The receiver's name; the sender is `cache.node`. */
  readonly to: string;
  /** The sender's ticket (`turns.ts`). */
  readonly turn: number;
  /** The number of the configuration that the sender last published. */
  readonly configuration: number;
  /** Versions and their chunks; `isComplete` in the digest of each period. */
  readonly cache: CacheMessage;
  /** With a digest. */
  readonly popularity?: PopularityDigest | undefined;
}

/** Demand and distances as one PoP sees them. */
export interface PopularityDigest {
  /** Requests per period of the most popular keys. */
  readonly popular: readonly (readonly [key: string, requests: number])[];
  readonly regions: readonly RegionEstimate[];
  /** Its peers, as sources of chunks. */
  readonly peers: readonly RegionEstimate[];
}
