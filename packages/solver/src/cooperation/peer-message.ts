/**
 * Messages between PoPs: the chunks that they hold (C2P, ICDCN'15, section 3.2), and once a period their popular keys
 * and their distance to everything else.
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
  /** Versions and their chunks: all of them (`isComplete`), all that changed since `base`, or the latest changes. */
  readonly cache: CacheMessage;
  /** When the sender stated last all that it holds, on its clock: a receiver that missed it asks for another. */
  readonly base?: number | undefined;
  /** Whether the sender has missed the receiver's digest. Default: false. */
  readonly lacksDigest?: boolean | undefined;
  /** Whether the receiver is one of the sender's nearest peers. Default: true. */
  readonly isNear?: boolean | undefined;
  /** Once a period. */
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
