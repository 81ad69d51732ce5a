/**
 * The parts of `agarose scrub` that run elsewhere: `@agarose/scrubber` walks with them in a Worker.
 */
export { parseDuration, parseMoney, parseRate, parseShare } from "./commands/scrub/amounts.ts";
export type { DeepOptions } from "./commands/scrub/deep-reads.ts";
export { metricsOf, type WalkTimes } from "./commands/scrub/metrics.ts";
export { scrubObjects, type ScrubOptions, type ScrubPart } from "./commands/scrub/scrub-objects.ts";
export { NONE as NO_TOTALS, totalsOf, type Totals } from "./commands/scrub/totals.ts";
export { parseConfig, type Config, type CredentialSource, type RegionConfig } from "./lib/config.ts";
export { Breaker } from "./lib/objects/commit/ask-regions.ts";
export { Fence } from "./lib/objects/commit/fence.ts";
export type { RepairContext } from "./lib/objects/repair/repair-object.ts";
export { signerOf, trustOf } from "./lib/signing.ts";
export { CREDENTIAL_PROBLEMS } from "./lib/store/credential-problems.ts";
export { checkedListing, PAGE_BYTES_MAX, type ListedPage } from "./lib/store/checked-listing.ts";
export { readRecordText } from "./lib/store/small-record.ts";
export { ReadWriteReadStore } from "./lib/store/read-write-read.ts";
export type { GetOptions, ListedObject, PutBody, PutOptions, PutReceipt, Store } from "./lib/store/store.ts";
export type { Cursor } from "./lib/walk/walk-cursor.ts";
