/**
 * `@agarose/core`: the stored format, the late-binding reader and its sources, and the HTTP face of an object.
 * Everything that must agree between the service worker, the edge and the command line is here.
 */

// Errors: one class, one code per cause.
export {
  AgaroseError,
  ERROR_CATALOGUE,
  explainError,
  HAS_MESSAGES,
  HTTP_STATUS,
  isOutdated,
  toAgaroseError,
  type ErrorCode,
  type ErrorDescription,
  type ProgramErrorCode,
} from "./errors.ts";

// Local worlds.
export { DEVELOPMENT_KEY } from "./development-key.ts";

// Ports: what core takes from its caller.
export type { Codec, Decoder, Shard } from "./codec.ts";
export {
  systemClock,
  systemSha256,
  type Clock,
  type FetchedResponse,
  type FetchInit,
  type FetchPort,
  type Random,
  type Sha256,
} from "./ports.ts";

// Latency of a source.
export { hedgeAfterMs, LATENCY_UNKNOWN, observeLatency, type LatencyEstimate } from "./latency.ts";

// Format: keys and the names of S3 objects.
export {
  CHUNK_PREFIX,
  chunkName,
  chunkNamePrefix,
  decodeKey,
  ENCODED_KEY_BYTES_MAX,
  encodeKey,
  keyOfManifestName,
  MANIFEST_PREFIX,
  manifestName,
  objectUrl,
  parseKey,
} from "./format/key.ts";
export { fromBase64, toHex } from "./format/text.ts";

// Format: manifests, stripes and placement.
export {
  blockCount,
  checkCode,
  chunkBytes,
  chunkHash,
  CHUNKS_MAX,
  encodeHashes,
  encodeManifest,
  excerptOf,
  FORMAT_VERSION,
  hasHashes,
  HEADERS_ALLOWED,
  inlineBytes,
  INLINE_BYTES_MAX,
  isFunctional,
  isTombstone,
  LEAF_LIST,
  leafShape,
  MANIFEST_BYTES_MAX,
  checkManifest,
  mayKeepHeader,
  parseManifest,
  refuseTooLarge,
  sealManifest,
  sealTombstone,
  STRIPE_BYTES_DEFAULT,
  STRIPE_BYTES_MAX,
  stripeCount,
  stripeShape,
  versionText,
  type Code,
  type Encryption,
  type Excerpt,
  type ExpectedManifest,
  type Manifest,
  type ManifestDraft,
  type ManifestRecord,
  type StripePart,
  type StripeShape,
  type Tombstone,
} from "./format/manifest/index.ts";
export { BLOCK_BYTES, concat, HASH_BYTES, hashBlocks, hashShard, treeRoot } from "./format/hash-tree.ts";
export {
  acceptUnsigned,
  isLocal,
  keyIdOf,
  rawPublicKey,
  trustOf,
  trustPublishers,
  type Signature,
  type SignatureCheck,
  type Signer,
  type TrustSettings,
} from "./format/signature.ts";
export {
  checkSurvival,
  roundRobin,
  spread,
  survives,
  type Placement,
  type PlacementRegion,
  type Survival,
} from "./format/placement.ts";

// Encryption before coding.
export {
  CELL_BYTES,
  CellCipher,
  encryptedBytes,
  encryptionOf,
  openEncrypted,
  openSecret,
  plainBytes,
  sealDataKey,
  sealEncryption,
  Secrets,
  shownBytes,
  storedRange,
  storedRangeOf,
  TAG_BYTES,
  type CellOwner,
  type EncryptedManifest,
  type OpenedObject,
  type Properties,
  type SealInput,
  type Secret,
  type SecretRule,
  type SecretSource,
} from "./encryption/index.ts";
export { HAS_ENCRYPTION, HAS_STORE } from "./features.ts";

// Format: bundles, frames and read plans on the wire.
export {
  BUNDLE_CONTENT_TYPE,
  encodeFrame,
  FRAME_HEADER_BYTES,
  encodePlan,
  isPlanRegion,
  parseFrames,
  parsePlan,
  type Frame,
  type Plan,
  type PlanPeer,
  type PlanRegion,
  type SignedChunks,
} from "./format/bundle.ts";

// Format: checks of values that came from elsewhere.
export { isCount, isRecord, isText } from "./format/shape.ts";

// Sources: where chunks and manifests come from.
export type { ChunkRequest, ChunkSource, SourceKind } from "./sources/source.ts";
export { BundleSource, type BundleSourceOptions } from "./sources/bundle-source.ts";
export { FrameReader } from "./sources/frame-reader.ts";
export { PEER_CHUNK_PREFIX, PeerSource, type PeerSourceOptions } from "./sources/peer-source.ts";
export type { Frames } from "./sources/shard-stream.ts";
export { RegionSource, SPAN_BYTES_MAX, type RegionSourceOptions } from "./sources/region-source.ts";
export {
  findManifest,
  isUnusable,
  LOOK_UP_BYTES_MAX,
  type FindManifestOptions,
  type ManifestSourceRegion,
} from "./sources/manifest-source.ts";
export { AVOID_MS, AVOID_MS_MAX, SourceHealth } from "./sources/source-health.ts";
export { ByteBudget } from "./sources/byte-budget.ts";
export { readMajority, type MajorityRead, type MajorityReadOptions } from "./sources/majority-read.ts";
export { staggeredRace, type Attempt, type FailedAttempt, type RaceOptions } from "./sources/staggered-race.ts";
export { readChecked } from "./sources/body.ts";

// Work at the same time.
export { Flights, once, orUndefined, type Flight } from "./async/coalesce.ts";
export { inParallel, Limiter, type Waiting } from "./async/limiter.ts";

// Streams.
export { pullStream, type PullSink, type PullSource } from "./pull-stream.ts";

// Read: the reader and what it is made of.
export { openRead, readLeaves, type ObjectRead } from "./read/object-stream.ts";
export {
  DELTA_DEFAULT,
  STRIPE_TIMEOUT_MS_DEFAULT,
  type ReadContext,
  type ReadObserver,
  type ReadPolicy,
  type ReadTarget,
  type StripeData,
  type StripeSharing,
} from "./read/read-options.ts";
export { BlockMemory } from "./read/block-memory.ts";
export {
  blockNames,
  BRIEF_BYTES_MAX,
  isSmall,
  needsLeaves,
  piecesOf,
  SMALL_BYTES_MAX,
  wholeName,
  type Piece,
} from "./read/pieces.ts";
export { planReadMs, planStripe, type Candidate, type PlanOptions } from "./read/read-plan.ts";
export { readStripe, type Hedge, type LatePiece, type StripeReadOptions } from "./read/stripe-read.ts";
export { checkHash, checkLeaves } from "./read/stripe-shards.ts";
export {
  readKind,
  serverTiming,
  type Decoding,
  type ReadKind,
  type ReadReport,
  type RequestRecord,
} from "./read/read-report.ts";

// HTTP: ranges, conditions and the responses of an object.
export { contentRange, parseRange, type ByteRange } from "./http/range.ts";
export { partsAnswer, type ObjectPart, type PartsAnswer } from "./http/object-parts.ts";
export {
  codingsOf,
  errorAnswer,
  failedCondition,
  isRangeValid,
  keyInPath,
  keyOfPath,
  objectAnswer,
  unshared,
  type ObjectAnswer,
  type Validators,
} from "./http/object-response.ts";

// Caches in memory.
export { ByteLru } from "./byte-lru.ts";
