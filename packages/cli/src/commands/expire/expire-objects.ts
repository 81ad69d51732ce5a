/**
 * One walk over all keys that a rule of `expire` covers.
 */
import { systemClock } from "@agarose/core";
import { Breaker } from "../../lib/objects/commit/ask-regions.ts";
import type { WriteOptions } from "../../lib/objects/commit/write-context.ts";
import { formatBytes, printable } from "../../lib/output.ts";
import type { ListedContext } from "../../lib/walk/listed-object.ts";
import { readRegionClocks } from "../../lib/walk/region-clocks.ts";
import type { ReportStream } from "../../lib/walk/report-stream.ts";
import { walkObjects, type Walk, type WalkOptions } from "../../lib/walk/walk-objects.ts";
import { commonPrefix, expireObject, type ExpireOutcome } from "./expire-object.ts";

/** What to do. */
export interface ExpireOptions extends Pick<WalkOptions, "cursor"> {
  /** Whether to print what is due in place of removing it. Default: false. */
  readonly dryRun?: boolean;
  /** Receives a warning of regions that cannot be listed. Default: it goes to stderr. */
  readonly onWarning?: (line: string) => void;
}

/** What it takes. */
export type ExpireWalkContext = WriteOptions &
  Omit<ListedContext, "breaker" | "clock"> & {
    /** Makes a name that no other run uses. */
    readonly newName: () => string;
  };

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
const HOUR_MS = 3_600_000;

/**
 * Walks once. `report` receives what is older than its rule.
 *
 * @throws CLOCKS_DISAGREE, STORE_FAILED, SOURCE_FAILED or CREDENTIALS_REFUSED as `readRegionClocks` does, USAGE when
 *   the cursor is of another walk, DISK_FULL when it cannot be written.
 */
export async function expireObjects(
  { cursor, dryRun = false, onWarning }: ExpireOptions,
  report: Pick<ReportStream, "item">,
  own: ExpireWalkContext,
): Promise<ExpireTotals> {
  const { config, clock = systemClock } = own;
  const ageOf = await readRegionClocks({ ...own, clock });
  const context = { ...own, clock, breaker: own.breaker ?? new Breaker(clock), ageOf, dryRun };
  const walk: Walk<ExpireOutcome, ExpireTotals> = {
    name: `expire${dryRun ? " dry" : ""} ${JSON.stringify(config.expire)}`,
    keys: [],
    options: { prefix: commonPrefix(config), ...(cursor !== undefined && { cursor }) },
    onWarning,
    objectsAtATime: OBJECTS_AT_A_TIME,
    act: (_key, group) => expireObject(group!, context),
    add,
    print: (result) => ({ value: result, lines: [lineOf(result)] }),
  };
  return walkObjects(walk, NONE, report, context);
}

function add(totals: ExpireTotals, result: ExpireOutcome): ExpireTotals {
  if (result.outcome === "failed") return { ...totals, failed: totals.failed + 1 };
  if (result.outcome === "skipped") return { ...totals, skipped: totals.skipped + 1 };
  return { ...totals, expired: totals.expired + 1, bytes: totals.bytes + result.bytes };
}

function lineOf(result: ExpireOutcome): string {
  const { key, outcome, ageMs } = result;
  const what = `${outcome.padEnd(7)}  ${printable(key)}`;
  if (outcome === "failed") return `${what}  ${result.error.code}: ${printable(result.error.message)}`;
  if (outcome === "skipped") return `${what}  ${printable(result.problem)}`;
  return `${what}  ${Math.floor(ageMs / HOUR_MS)} h old, ${formatBytes(result.bytes)}`;
}
