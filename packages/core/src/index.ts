/** Manifest, placement, read plan and the late-binding reader: everything that must agree wherever Agarose runs. */
export type { Codec, Shard } from "./codec.ts";
export { AgaroseError, toAgaroseError, type ErrorCode } from "./errors.ts";
export * from "./key.ts";
export * from "./manifest.ts";
export * from "./placement.ts";
export * from "./latency.ts";
export * from "./ports.ts";
export * from "./range.ts";
export * from "./object-response.ts";
export * from "./source.ts";
export * from "./read-plan.ts";
export * from "./read-report.ts";
export * from "./reader.ts";
export { readStripe, type StripeReadOptions } from "./stripe-read.ts";
export * from "./bundle.ts";
export * from "./bundle-source.ts";
export * from "./region-source.ts";
export * from "./manifest-source.ts";
