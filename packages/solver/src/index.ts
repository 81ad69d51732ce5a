/**
 * What to cache: caching options, the exact knapsack, cache policies, the messages of cooperating caches, the simulator
 * and the advisor. Pure functions: the caller passes clocks and randomness in, and nothing here reads files or the
 * network. Each room is also a subpath of its own, which loads no other room's code.
 */
export * from "./cooperation/index.ts";
export type { SolverError, SolverErrorCode } from "./errors.ts";
export { solveKnapsack, type KnapsackInstance, type KnapsackLimits, type KnapsackSolution } from "./knapsack/index.ts";
export * from "./planner/index.ts";
export * from "./policies/index.ts";
export { seededRandom, type Random } from "./random.ts";
export * from "./simulator/index.ts";
