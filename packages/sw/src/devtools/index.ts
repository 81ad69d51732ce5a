/** Tools that watch the reads of an origin: `@agarose/sw/devtools`, or `agarose-devtools.js` without a bundler. */
export { onRead } from "../page/on-read.ts";
export { logReads } from "./log-reads.ts";
export { showOverlay } from "./overlay.ts";
export { summarized, totalsOf, type ReadSummary, type ReadTotals } from "./read-summary.ts";
