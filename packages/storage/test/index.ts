/** Helpers that the tests of other packages share with those of this one. */
export { isLinearizable, type HistoryEntry } from "./interleavings/linearizability.ts";
export { Dice } from "./interleavings/world/noise.ts";
