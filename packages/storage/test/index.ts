/**
 * What the tests of other packages share with those of this one.
 */
export { format1Of } from "./interleavings/format1.ts";
export { isLinearizable, type HistoryEntry } from "./interleavings/linearizability.ts";
export { Dice } from "./interleavings/world/noise.ts";
