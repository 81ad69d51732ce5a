/**
 * One walk over all keys that a rule of `expire` covers, which removes objects that are older than it allows.
 *
 * The age of an object is the time since its manifest was stored, by the clocks of a majority of the regions: neither
 * the clock of this machine nor that of a publisher can make an object older. A command that stores the manifest again,
 * such as `repair` or `recode`, makes it younger.
 */
import { toAgaroseError, type AgaroseError } from "@agarose/core";
import { isTombstone, type Manifest, type ManifestRecord } from "@agarose/core/format";
import { ClaimRemovals } from "../commit/claim-removals.ts";
import { replacedMeanwhile } from "../commit/commit.ts";
import { ruleOf } from "../commit/history.ts";
import { commonStart } from "../commit/names.ts";
import { majorityOf, type WriteContext } from "../commit/write-context.ts";
import type { Config } from "../config/config.ts";
import type { KeyGroup } from "../listing/key-groups.ts";
import { commonEtag, etagOfAll, listedSurvey, majorityRecord } from "../listing/listed-object.ts";
import { ageOfMajority, answeredClocks, readRegionClocks, type AgeOf } from "../listing/region-clocks.ts";
import { walkObjects, type Walk, type WalkOptions } from "../listing/walk-objects.ts";
import { removeObject, type RemoveResult } from "../objects/remove-object.ts";
import { addNumbers } from "./add-numbers.ts";

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

/** The outcome of one key that is older than its rule allows. */
export type ExpireOutcome = { readonly key: string; readonly ageMs: number } & (
  | { readonly outcome: "due"; readonly bytes: number }
  | ({ readonly outcome: "removed"; readonly bytes: number } & Pick<
      RemoveResult,
      "generation" | "regionsWithoutTombstone"
    >)
  /** No majority holds one version, or another writer replaced the object in the meantime. */
  | { readonly outcome: "skipped"; readonly problem: string }
  | { readonly outcome: "failed"; readonly error: AgaroseError }
);

interface ExpireHow {
  readonly ageOf: AgeOf;
  readonly dryRun: boolean;
}

const DIFFERENT = "no majority of the regions holds one version that it also lists: run `agarose repair`";

/** Judges a listed key; undefined where it is young, has no rule, or has no object. */
export async function expireObject(
  group: KeyGroup,
  context: WriteContext,
  { ageOf, dryRun }: ExpireHow,
): Promise<ExpireOutcome | undefined> {
  const { key, manifests } = group;
  const rule = ruleOf(key, context.config.expire);
  if (!rule) return undefined;
  const ageMs = ageOfMajority(manifests.map(ageOf), majorityOf(context.stores));
  const isOld = ageMs >= rule.time;
  const isEqual = commonEtag(group, context) !== undefined;
  if (!isOld && isEqual) return undefined;
  try {
    // The present version of a region may be younger than the listed one.
    const etag = etagOfAll(group, context);
    const survey = etag === undefined ? undefined : await listedSurvey(etag, key, context);
    const listed = survey ? survey.newest : await majorityRecord(group, context);
    if (!listed) return isOld ? { key, ageMs, outcome: "skipped", problem: DIFFERENT } : undefined;
    if (isTombstone(listed) ? isEqual : !isOld) return undefined;
    // A run that was killed left its tombstone in a majority: the young one must come everywhere.
    const { bytes = 0, version, generation } = listed as Partial<Manifest> & ManifestRecord;
    if (dryRun) return { key, ageMs, outcome: "due", bytes };
    const onlyIf = (newest: ManifestRecord | undefined): void => {
      if (!newest) throw replacedMeanwhile(key, {}, "it stays");
      // A run that was killed left its tombstone in a minority.
      if (isTombstone(newest) && !isTombstone(listed)) return;
      // Of a listed tombstone, just that one: what was put behind it is too young.
      if ((newest as Partial<Manifest>).version !== version || newest.generation !== generation)
        throw replacedMeanwhile(key, {}, "it stays");
    };
    const removal = await removeObject(key, context, { onlyIf, survey });
    if (!removal) return undefined;
    const { generation: tombstone, regionsWithoutTombstone } = removal;
    return { key, ageMs, outcome: "removed", bytes, generation: tombstone, regionsWithoutTombstone };
  } catch (cause) {
    context.signal.throwIfAborted();
    const error = toAgaroseError(cause);
    if (error.code === "REPLACED_MEANWHILE") return { key, ageMs, outcome: "skipped", problem: error.message };
    return { key, ageMs, outcome: "failed", error };
  }
}

/** The longest prefix that all keys with a rule have: what is outside of it needs no listing. */
export function commonPrefix({ expire }: Pick<Config, "expire">): string {
  const [first = "", ...others] = expire.map(({ prefix }) => prefix);
  return others.reduce(commonStart, first);
}
