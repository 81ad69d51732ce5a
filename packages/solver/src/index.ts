/** What to cache: options, the exact knapsack, popularity, policies and the simulator. Pure: no I/O, clock or randomness. */

export { cachingOptions, readMsWithCached } from "./caching-option.ts";
export type { CachingOption, ChunkSource, ObjectToCache } from "./caching-option.ts";
export { solveKnapsack } from "./knapsack.ts";
export type { KnapsackInstance, KnapsackLimits, KnapsackSolution } from "./knapsack.ts";
export { expectedReadMs } from "./latency.ts";
export type { LatencyEstimate } from "./latency.ts";
export { DiscountingRate, EwmaPopularity } from "./popularity.ts";
export { nominalBytes } from "./simulator/catalogue.ts";
export { parseScenario, resolveExtends, withCacheFactor } from "./simulator/scenario.ts";
export type { Scenario } from "./simulator/scenario.ts";
export { simulate } from "./simulator.ts";
export type { SimulationOptions, SimulationRow } from "./simulator.ts";
export { LOG_FORMATS } from "./traces/log-formats.ts";
export type { LogFormat } from "./traces/log-formats.ts";
export { TraceBuilder } from "./traces/trace.ts";
export type { Trace, TraceReport } from "./traces/trace.ts";
export { imbalancePercent, serverLoads, splitVarianceRatio } from "./load-balance.ts";
export { advise } from "./advisor.ts";
export type { Advice, AdvisedPop, AdvisedRegion, AdviceRequest } from "./advisor.ts";
export { exponentialServer, latencyBound, queueMoments } from "./sprout/latency-bound.ts";
export { optimizeSprout } from "./sprout/optimize.ts";
export type { SproutFile, SproutPlan } from "./sprout/optimize.ts";
