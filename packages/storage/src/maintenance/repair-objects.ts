/** A walk that verifies objects and rewrites what is missing or damaged: first those that wait in the repair queue. */
import { toAgaroseError, type AgaroseError } from "@agarose/core";
import { keyName } from "@agarose/core/format";
import type { Store } from "../buckets/store.ts";
import { verifyWithHistory } from "../history/kept-versions.ts";
import { keyGroups } from "../listing/key-groups.ts";
import { isForgotten, quickKinds, quickVerdict } from "../listing/listed-verdict.ts";
import { mapOrdered } from "../listing/adaptive-pool.ts";
import { isKey, requireMajority, type FailedRegion } from "../listing/keys.ts";
import { isInShard } from "../listing/shard.ts";
import { walkObjects, type Walk, type WalkOptions } from "../listing/walk-objects.ts";
import {
  refuseUnknown,
  unreachableRegions,
  withUnreachable,
  type UnreachableRegion,
} from "../objects/verify-object.ts";
import type { DeploymentParts } from "../parts.ts";
import { keysBehind } from "../pops/pop-client.ts";
import type { RepairHow, RepairReport } from "../repair/repair-object.ts";
import { repairOne, type RepairOutcome } from "../repair/repair-outcome.ts";
import { addNumbers } from "./add-numbers.ts";

/** The objects to repair, and how. */
export interface RepairOptions extends WalkOptions {
  /** Default: all keys that begin with the prefix, after those that are queued. */
  readonly keys?: readonly string[];
  /** Whether to trust listings in place of reading every byte. Default: false. */
  readonly quick?: boolean;
  /** Whether to stop after what the repair queue and the PoPs name. Default: false. */
  readonly queued?: boolean;
  /** Whether to report what is damaged in place of repairing it. Default: false. */
  readonly dryRun?: boolean;
  readonly onOutcome: (outcome: RepairOutcome) => Promise<void>;
}

/** How many objects came to which end. */
export interface RepairTotals extends Readonly<Record<RepairOutcome["outcome"], number>> {
  readonly regionsUnreachable: readonly UnreachableRegion[];
}

const NONE: RepairTotals = { sound: 0, repaired: 0, damaged: 0, failed: 0, regionsUnreachable: [] };
/** One reads, encodes and uploads with all there is. */
const OBJECTS_AT_A_TIME = 1;
const OBJECTS_AT_A_TIME_QUICK = 8;
/** More than these are looked at twice, rather than kept in memory. */
const QUEUED_REMEMBERED_MAX = 100_000;

/**
 * Walks once. A failure of one object is an outcome. A dry run writes nothing.
 *
 * @throws OBJECT_NOT_FOUND for a given key that no region has, NO_QUORUM when so few regions could be listed that
 *   queued keys may be missing, and as `walkObjects` does.
 */
export async function repairObjects(options: RepairOptions, context: DeploymentParts): Promise<RepairTotals> {
  const { keys = [], prefix = "", quick = false, queued = false, dryRun = false, onOutcome } = options;
  const repairKey = dryRun ? lookAt : repairOne;
  const objectsAtATime = quick ? OBJECTS_AT_A_TIME_QUICK : OBJECTS_AT_A_TIME;
  const done = new Set<string>();
  let totals = NONE;

  const repairWaiting = async (waiting: AsyncIterable<{ readonly key: string }>): Promise<void> => {
    const act = async ({ key }: { readonly key: string }) =>
      done.has(key) ? undefined : repairKey(key, context, { quick: true });
    for await (const outcome of mapOrdered(waiting, options.jobs ?? objectsAtATime, act)) {
      if (outcome === undefined) continue;
      await onOutcome(outcome);
      totals = add(totals, outcome);
      if (done.size < QUEUED_REMEMBERED_MAX) done.add(outcome.key);
    }
  };
  if (keys.length === 0) {
    const { stores, signal, breaker, shard } = context;
    const failed: FailedRegion[] = [];
    const onFailure = ({ region: { name: region } }: Store, { message: problem }: AgaroseError): void => {
      breaker.open(region);
      failed.push({ region, problem });
      options.onWarning?.(`warning: the repair queue of ${region} cannot be listed: ${problem}`);
    };
    await repairWaiting(keyGroups(stores, prefix, signal, { kinds: ["repairs"], shard, onFailure }));
    await repairWaiting(seenByPops(prefix, context));
    requireMajority(prefix, failed, stores);
  }
  if (queued) return totals;

  const walk: Walk<RepairOutcome, RepairTotals> = {
    name: `repair${quick ? " quick" : ""}${dryRun ? " dry" : ""}`,
    options,
    ...(quick && { kinds: quickKinds(context.config) }),
    objectsAtATime,
    async act(key, group) {
      // Done a moment ago, from the queue.
      if (group && done.has(key)) return undefined;
      const listed = quick && group ? await quickVerdict(group, context) : undefined;
      if (listed) return { key, outcome: "sound", ...unchanged(listed) };
      const outcome = await repairKey(key, context, { quick });
      if (outcome.outcome === "failed") return outcome;
      if (!group) refuseUnknown([outcome.before]);
      if (group && isForgotten(group, outcome.after)) return undefined;
      return outcome;
    },
    add,
    onResult: onOutcome,
  };
  return sumOf(totals, await walkObjects(walk, NONE, context));
}

/** The findings of a repair, for a dry run: it writes nothing, so that damage stays. */
async function lookAt(key: string, context: DeploymentParts, { quick = false }: RepairHow): Promise<RepairOutcome> {
  try {
    const verdict = await verifyWithHistory(key, context, quick);
    return { key, outcome: verdict.sound ? "sound" : "damaged", ...unchanged(verdict) };
  } catch (error) {
    context.signal.throwIfAborted();
    return { key, outcome: "failed", error: toAgaroseError(error) };
  }
}

function unchanged(verdict: RepairReport["before"]): RepairReport {
  return { before: verdict, chunksWritten: 0, manifestsWritten: 0, after: verdict };
}

function add(totals: RepairTotals, outcome: RepairOutcome): RepairTotals {
  const found = outcome.outcome === "failed" ? [] : unreachableRegions([outcome.after]);
  return {
    ...totals,
    [outcome.outcome]: totals[outcome.outcome] + 1,
    regionsUnreachable: withUnreachable(totals.regionsUnreachable, found),
  };
}

function sumOf(a: RepairTotals, b: RepairTotals): RepairTotals {
  const { regionsUnreachable, ...counts } = b;
  return { ...addNumbers(a, counts), regionsUnreachable: withUnreachable(a.regionsUnreachable, regionsUnreachable) };
}

/** The keys that PoPs report, which cannot write to the queue. */
async function* seenByPops(
  prefix: string,
  { config, shard }: DeploymentParts,
): AsyncGenerator<{ readonly key: string }> {
  const isOurs = (key: string): boolean => shard === undefined || isInShard(keyName(key), shard);
  for (const key of await keysBehind(config.pops))
    if (key.startsWith(prefix) && isKey(key) && isOurs(key)) yield { key };
}
