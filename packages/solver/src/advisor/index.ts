/** Which code, regions and cache size to choose, and whether to use erasure coding at all. */
export { advise, type Advice, type AdviceRequest } from "./advise.ts";
export { dataOfLog } from "./log-data.ts";
export { judge, type Baseline, type Verdict } from "./verdict.ts";
