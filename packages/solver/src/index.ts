/**
 * What to cache: caching options, the exact knapsack, cache policies, the messages of cooperating caches, the simulator
 * and the advisor. Pure functions: the caller passes clocks and randomness in, and nothing here reads files or the
 * network.
 */

export { advise } from "./advisor/advise.ts";
export { dataOfLog } from "./advisor/log-data.ts";
export { judge, type Baseline, type Verdict } from "./advisor/verdict.ts";
export { FAILURES_DEFAULT, lossesPerYear, nines, unavailability } from "./advisor/durability.ts";
export type { ChunkPlace, FailureModel } from "./advisor/durability.ts";
export type { Advice, AdvisedPop, AdvisedRegion, AdviceRequest, Rated } from "./advisor/advise.ts";
export { codesBySize } from "./advisor/codes-by-size.ts";
export type { CodeLayout, CodesBySize, CodesRequest, SizedCode } from "./advisor/codes-by-size.ts";
export { WEB_SIZES } from "./advisor/web-sizes.ts";
export type { SizeCount } from "./advisor/web-sizes.ts";
export { CacheEvents } from "./cooperation/cache-events.ts";
export type { CacheEventsSettings } from "./cooperation/cache-events.ts";
export { parseCacheMessage } from "./cooperation/cache-message.ts";
export type { CacheMessage, CacheStatement } from "./cooperation/cache-message.ts";
export { ObjectsInCache } from "./cooperation/objects-in-cache.ts";
export { PeerTable, SILENT_AFTER_MS } from "./cooperation/peer-table.ts";
export type { PeerRecord } from "./cooperation/peer-table.ts";
export type { PeerMessage, PopularityDigest } from "./cooperation/peer-message.ts";
export { NO_PEERS, peerView } from "./cooperation/peer-view.ts";
export type { PeerReport, PeerView, PeerViewOptions } from "./cooperation/peer-view.ts";
export { isFirst, nextTurn } from "./cooperation/turns.ts";
export type { Ticket } from "./cooperation/turns.ts";
export type { SolverError, SolverErrorCode } from "./errors.ts";
export { solveKnapsack } from "./knapsack/index.ts";
export type { KnapsackInstance, KnapsackLimits, KnapsackSolution } from "./knapsack/index.ts";
export { cachingOptions } from "./options/caching-option.ts";
export type { CachingOption, ChunkLatency, ObjectToCache } from "./options/caching-option.ts";
export { expectedReadMs } from "./options/latency.ts";
export type { LatencyLaw } from "./options/latency.ts";
export { chunkLatencies, deliveryMs, DOWN_MS, nearer, recoveredChunks } from "./options/sources.ts";
export type { Placed, RegionEstimate, SourceLatency } from "./options/sources.ts";
export type { CachedObject, ObjectShape } from "./planner/object-shape.ts";
export { Planner, SLOTS } from "./planner/planner.ts";
export { pricesInMs } from "./planner/prices.ts";
export type { MsPrices, UsdPrices } from "./planner/prices.ts";
export type { CachePlan, PlanInput, PlannedContents, PlannerOptions, PlannerState } from "./planner/plan.ts";
export { imbalancePercent } from "./planner/savings.ts";
export type { Savings } from "./planner/savings.ts";
export { createPolicy, POLICY_NAMES } from "./policies/registry.ts";
export type { Policy, PolicyCache, StorageView } from "./policy/policy.ts";
export { replay } from "./policy/replay.ts";
export { seededRandom } from "./random.ts";
export type { Random } from "./random.ts";
export { simulate } from "./simulator/simulate.ts";
export type { SimulationOptions, SimulationRow } from "./simulator/simulate.ts";
export { nominalBytes } from "./simulator/scenario/catalogue.ts";
export { parseScenario } from "./simulator/scenario/parse-scenario.ts";
export { resolveExtends, withCacheFactor } from "./simulator/scenario/scenario.ts";
export type { Scenario } from "./simulator/scenario/scenario.ts";
export { rankProbabilities } from "./simulator/workload.ts";
export { quantile } from "./simulator/statistics.ts";
export { guessLogFormat } from "./traces/guess-format.ts";
export { LOG_FORMATS } from "./traces/log-formats.ts";
export type { LogFormat, LogRecord } from "./traces/log-formats.ts";
export { sampleTrace } from "./traces/sample.ts";
export { READS_MAX, TraceBuilder } from "./traces/trace.ts";
export type { Trace, TraceOptions, TraceReport } from "./traces/trace.ts";
