/** The PoP on Node: the application of the Worker, on this machine's disk and SQLite. */
export { startPop } from "./pop.ts";
export type { Pop, PopOptions } from "./pop.ts";
