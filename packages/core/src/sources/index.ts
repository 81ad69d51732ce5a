/** `@agarose/core/sources`: where chunks and manifests come from, and how fast and how sure each source is. */
export { UNWANTED, type ChunkRequest, type ChunkSource, type SourceKind } from "./source.ts";
export { bundleSource, type BundleSourceOptions } from "./bundle-source.ts";
export { FrameReader } from "./frame-reader.ts";
export { PEER_CHUNK_PREFIX, peerSource, type PeerSourceOptions } from "./peer-source.ts";
export { RegionSource, SPAN_BYTES_MAX, type RegionSourceOptions } from "./region-source.ts";
export type { Frames } from "./shard-stream.ts";
export { readChecked } from "./body.ts";

// Manifests.
export { findManifest, isUnusable, type FindManifestOptions, type ManifestSourceRegion } from "./manifest-source.ts";
export { readMajority, type TaggedManifest, type MajorityRead, type MajorityReadOptions } from "./majority-read.ts";
export { staggeredRace, type Attempt, type FailedAttempt, type RaceOptions } from "./staggered-race.ts";

// Latency and health of sources.
export { hedgeAfterMs, LATENCY_UNKNOWN, observeLatency, type LatencyEstimate } from "../latency.ts";
export { AVOID_MS, AVOID_MS_MAX, SourceHealth } from "./source-health.ts";
