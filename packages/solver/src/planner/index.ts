/** The planner of one PoP: caching options, prices, and the contents that its cache should have. */
export {
  cachingOptions,
  type CachingOption,
  type ChunkLatency,
  type ObjectToCache,
} from "../options/caching-option.ts";
export type { FirstRead } from "./cache-options.ts";
export { deliveryMs, DOWN_MS, recoveredChunks, type RegionEstimate } from "../options/sources.ts";
export type { CachedObject, ObjectShape } from "./object-shape.ts";
export type { CachePlan, PlanInput, PlannedContents, PlannerOptions, PlannerState } from "./plan.ts";
export { Planner, SLOTS } from "./planner.ts";
export { pricesInMs, type MsPrices, type UsdPrices } from "./prices.ts";
export { imbalancePercent, type Savings } from "./savings.ts";
