/** The PoP on Node: the application of the Worker, on this machine's disk and SQLite. */
export { lockFolder } from "./platform/folder-lock.ts";
export { startPop } from "./pop.ts";
export type { Pop, PopOptions } from "./pop.ts";
