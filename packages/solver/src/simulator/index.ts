/** Scenarios, and what a simulation of one says. */
export { nominalBytes } from "./scenario/catalogue.ts";
export { parseScenario, resolveExtends, withCacheFactor, type Scenario } from "./scenario/scenario.ts";
export { simulate, type SimulationOptions, type SimulationRow } from "./simulate.ts";
export { quantile } from "./statistics.ts";
export { rankProbabilities } from "./workload.ts";
