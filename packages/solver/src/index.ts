/**
 * * The choice of cached chunks: the exact knapsack and the simulator. The other folders are subpaths. All are pure
 * functions: the caller passes clocks and randomness in, and nothing here reads files or the network.
 */
export { SolverError, type SolverErrorCode } from "./errors.ts";
export { solveKnapsack, type KnapsackInstance, type KnapsackLimits, type KnapsackSolution } from "./knapsack/index.ts";
export {
  parseScenario,
  simulate,
  type Scenario,
  type SimulationOptions,
  type SimulationRow,
} from "./simulator/index.ts";
