/** `@agarose/core/read`: the reader and what it is made of. */
export { hashesFrom, openRead, readLeaves, type ObjectRead } from "./object-stream.ts";
export {
  DELTA_DEFAULT,
  STRIPE_TIMEOUT_MS_DEFAULT,
  type ReadContext,
  type ReadObserver,
  type ReadPolicy,
  type ReadTarget,
  type StripeData,
  type StripeSharing,
} from "./read-options.ts";
export {
  blockNames,
  BRIEF_BYTES_MAX,
  isSmall,
  needsLeaves,
  piecesOf,
  SMALL_BYTES_MAX,
  wholeName,
  type Piece,
} from "./pieces.ts";
export { Line, type LineRequest } from "./line.ts";
export { planReadMs, planStripe, type Candidate, type PlanOptions } from "./read-plan.ts";
export { readStripe, type Hedge, type StripeReadOptions } from "./stripe-read.ts";
export { StripeHashes, type ReadPage } from "./stripe-hashes.ts";
export { checkHash, checkLeaves, type HashedStripe } from "./stripe-shards.ts";
export {
  readKind,
  serverTiming,
  type Decoding,
  type ReadKind,
  type ReadReport,
  type RequestRecord,
} from "./read-report.ts";

// Caches in memory.
export { BlockMemory } from "./block-memory.ts";
export { ByteLru } from "../byte-lru.ts";
