/**
 * `@agarose/core/format`: everything that is stored or sent: keys, manifests, stripes, signatures, bundles and plans.
 */

// Keys and the names of S3 objects.
export {
  CHUNK_PREFIX,
  chunkName,
  chunkNamePrefix,
  encodeKey,
  keyName,
  keyNamePrefix,
  keyOfName,
  MANIFEST_PREFIX,
  manifestName,
  objectUrl,
  parseKey,
} from "./key.ts";
export { fromBase64, toBase64, toHex } from "./text.ts";

// Manifests, stripes and placement.
export * from "./manifest/index.ts";
export { BLOCK_BYTES, concat, HASH_BYTES, hashBlocks, hashShard, treeRoot } from "./hash-tree.ts";
export {
  checkSurvival,
  roundRobin,
  spread,
  survives,
  type Placement,
  type PlacementRegion,
  type Survival,
} from "./placement.ts";

// Signatures.
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
} from "./signature.ts";
export { DEVELOPMENT_KEY } from "../development-key.ts";

// Bundles, frames and read plans on the wire.
export {
  BUNDLE_CONTENT_TYPE,
  bundleError,
  encodeFrame,
  encodePlan,
  FRAME_HEADER_BYTES,
  isPlanRegion,
  parseFrames,
  parsePlan,
  type Frame,
  type Plan,
  type PlanPeer,
  type PlanRegion,
  type SignedChunks,
} from "./bundle.ts";

// Checks of values that came from elsewhere.
export { isCount, isRecord, isText } from "./shape.ts";
