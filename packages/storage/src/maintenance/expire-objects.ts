/** One walk over all keys that a rule of `expire` covers. */
import { ClaimRemovals } from "../commit/claim-removals.ts";
import type { WriteContext } from "../commit/write-context.ts";
import { answeredClocks, readRegionClocks } from "../listing/region-clocks.ts";
import { walkObjects, type Walk, type WalkOptions } from "../listing/walk-objects.ts";
import { addNumbers } from "./add-numbers.ts";
import { commonPrefix, expireObject, type ExpireOutcome } from "./expire-object.ts";

/** The task. */
export interface ExpireOptions extends Pick<WalkOptions, "cursor" | "jobs" | "onWarning"> {
  /** Whether to report what is due in place of removing it. Default: false. */
  readonly dryRun?: boolean;
  /** Called with each object that is older than its rule. */
  readonly onOutcome?: (outcome: ExpireOutcome) => Promise<void>;
}

/** Sums over the objects that are older than their rule. */
export interface ExpireTotals {
  /** Removed, or with `dryRun` to be. */
  readonly expired: number;
  /** Of their content. */
  readonly bytes: number;
  readonly skipped: number;
  readonly failed: number;
}

const NONE: ExpireTotals = { expired: 0, bytes: 0, skipped: 0, failed: 0 };
const OBJECTS_AT_A_TIME = 8;

/**
 * Walks once. A dry run writes nothing.
 *
 * @throws CLOCKS_DISAGREE, STORE_FAILED, SOURCE_FAILED or CREDENTIALS_REFUSED as `readRegionClocks` does, USAGE when
 *   the cursor is of another walk, DISK_FULL when it cannot be written.
 */
export async function expireObjects(
  { dryRun = false, onOutcome, ...options }: ExpireOptions,
  context: WriteContext,
): Promise<ExpireTotals> {
  const { config } = context;
  const ageOf = dryRun ? answeredClocks(context) : await readRegionClocks(context);
  const parts = { ...context, claimRemovals: new ClaimRemovals(context) };
  const walk: Walk<ExpireOutcome, ExpireTotals> = {
    name: `expire${dryRun ? " dry" : ""} ${JSON.stringify(config.expire)}`,
    options: { ...options, prefix: commonPrefix(config) },
    objectsAtATime: OBJECTS_AT_A_TIME,
    act: (_key, group) => expireObject(group!, parts, { ageOf, dryRun }),
    add,
    ...(onOutcome && { onResult: onOutcome }),
  };
  try {
    return await walkObjects(walk, NONE, context);
  } finally {
    await parts.claimRemovals.flush();
  }
}

function add(totals: ExpireTotals, result: ExpireOutcome): ExpireTotals {
  if ("bytes" in result) return addNumbers(totals, { expired: 1, bytes: result.bytes });
  return addNumbers(totals, { [result.outcome]: 1 });
}
