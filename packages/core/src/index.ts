/** Manifest, placement, read plan and the late-binding reader: everything that must agree wherever Agarose runs. */
export type { Codec, Decoder, Shard } from "./codec.ts";
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
export * from "./format/key.ts";
export { isCount, isRecord, isText } from "./format/shape.ts";
export * from "./format/manifest.ts";
export * from "./format/placement.ts";
export * from "./latency.ts";
export * from "./ports.ts";
export * from "./http/range.ts";
export * from "./http/object-response.ts";
export * from "./sources/source.ts";
export * from "./read/read-plan.ts";
export * from "./read/read-report.ts";
export * from "./read/reader.ts";
export { readStripe, type Hedge, type StripeReadOptions } from "./read/stripe-read.ts";
export { checkHash, dataShards } from "./read/stripe-shards.ts";
export * from "./format/bundle.ts";
export * from "./sources/bundle-source.ts";
export * from "./sources/region-source.ts";
export * from "./sources/peer-source.ts";
export { readChecked, readExactly } from "./sources/body.ts";
export * from "./sources/staggered-race.ts";
export * from "./sources/manifest-source.ts";
