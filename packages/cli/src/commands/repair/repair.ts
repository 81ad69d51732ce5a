/**
 * `agarose repair`: verifies objects and rewrites what is missing or damaged.
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { withContext, WRITING, type CommandContext } from "../../lib/context.ts";
import { verifyWithHistory } from "@agarose/storage/history/verify-history";
import type { RepairHow, RepairReport } from "@agarose/storage/repair/repair-object";
import { repairOne, type RepairOutcome } from "@agarose/storage/repair/repair-outcome";
import {
  refuseUnknown,
  unreachableRegions,
  withUnreachable,
  type UnreachableRegion,
} from "@agarose/storage/objects/verdicts";
import { repairLines, unreachableLine } from "../../ui/verdict-lines.ts";
import type { FailedRegion } from "@agarose/storage/listing/keys";
import { EXIT_FAILED, EXIT_OK, formatCount, logLine } from "../../ui/output.ts";
import { QueuedKeys } from "@agarose/storage/repair/queued-keys";
import { quickKinds, quickVerdict } from "@agarose/storage/listing/listed-verdict";
import { mapOrdered } from "@agarose/storage/listing/ordered-pool";
import { ReportStream } from "../../ui/report-stream.ts";
import { walkObjects, type Walk } from "@agarose/storage/listing/walk-objects";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** The options of `agarose repair`. */
export type RepairOptions = Values<typeof args>;

interface Totals {
  readonly sound: number;
  readonly repaired: number;
  readonly damaged: number;
  readonly failed: number;
  readonly regionsUnreachable: readonly UnreachableRegion[];
}

const NONE: Totals = { sound: 0, repaired: 0, damaged: 0, failed: 0, regionsUnreachable: [] };
/** One reads, encodes and uploads with all there is. */
const OBJECTS_AT_A_TIME = 1;
const OBJECTS_AT_A_TIME_QUICK = 8;
/** More than these are looked at twice, rather than kept in memory. */
const QUEUED_REMEMBERED_MAX = 100_000;

/** Runs `agarose repair`. The command exits with 1 while an object is still damaged. */
export async function repair({ keys, ...options }: RepairOptions): Promise<number> {
  if (options.queued && keys.length > 0) throw new AgaroseError("USAGE", "give either keys or --queued");
  return withContext(options, WRITING, async (context) => {
    const { quick = false, dryRun = false } = options;
    const repairKey = dryRun ? lookAt : repairOne;
    const report = new ReportStream(options);
    const done = new Set<string>();
    const walk: Walk<RepairOutcome, Totals> = {
      name: `repair${quick ? " quick" : ""}${dryRun ? " dry" : ""}`,
      keys,
      options,
      ...(quick && { kinds: quickKinds(context.config) }),
      objectsAtATime: quick ? OBJECTS_AT_A_TIME_QUICK : OBJECTS_AT_A_TIME,
      async act(key, group) {
        // Done a moment ago, from the queue.
        if (group && done.has(key)) return undefined;
        const listed = quick && group ? await quickVerdict(group, context) : undefined;
        if (listed) return { key, outcome: "sound", ...unchanged(listed) };
        const outcome = await repairKey(key, context, { quick });
        if (!group && outcome.outcome !== "failed") refuseUnknown([outcome.before]);
        return outcome;
      },
      add,
      onResult: (outcome) => report.item(outcome, repairLines(outcome)),
      onWarning: logLine,
    };
    try {
      let queued = NONE;
      const repairAll = async (waiting: AsyncIterable<{ readonly key: string }>): Promise<void> => {
        const repairQueued = async ({ key }: { readonly key: string }) =>
          done.has(key) ? undefined : repairKey(key, context, { quick: true });
        for await (const outcome of mapOrdered(waiting, options.jobs ?? walk.objectsAtATime, repairQueued)) {
          if (outcome === undefined) continue;
          await report.item(outcome, repairLines(outcome));
          queued = add(queued, outcome);
          if (done.size < QUEUED_REMEMBERED_MAX) done.add(outcome.key);
        }
      };
      if (keys.length === 0) {
        const queue = new QueuedKeys(options.prefix ?? "", context);
        const onFailure = ({ region, problem }: FailedRegion): void =>
          logLine(`warning: the repair queue of ${region} cannot be listed: ${problem}`);
        await repairAll(queue.entries(onFailure));
        await repairAll(queue.seenByPops());
        queue.requireComplete();
      }
      const walked = options.queued ? NONE : await walkObjects(walk, NONE, context);
      const { regionsUnreachable, ...counts } = sumOf(queued, walked);
      const objects = counts.sound + counts.repaired + counts.damaged + counts.failed;
      await report.end({ ...counts, ...(dryRun && { dryRun }) }, [
        ...regionsUnreachable.map(unreachableLine),
        dryRun
          ? `${formatCount(objects, "object")}, ${counts.damaged} damaged, ${counts.failed} failed; nothing was written`
          : `${formatCount(objects, "object")}, ${counts.repaired} repaired, ${counts.damaged} still damaged, ${counts.failed} failed`,
      ]);
      return counts.damaged + counts.failed === 0 ? EXIT_OK : EXIT_FAILED;
    } catch (error) {
      return report.fail(error);
    }
  });
}

/** What a repair would find, for a dry run: it writes nothing, so that what is damaged stays so. */
async function lookAt(key: string, context: CommandContext, { quick = false }: RepairHow): Promise<RepairOutcome> {
  try {
    const verdict = await verifyWithHistory(key, context, quick);
    return { key, outcome: verdict.sound ? "sound" : "damaged", ...unchanged(verdict) };
  } catch (error) {
    context.signal.throwIfAborted();
    return { key, outcome: "failed", error: toAgaroseError(error) };
  }
}

function sumOf(a: Totals, b: Totals): Totals {
  return {
    sound: a.sound + b.sound,
    repaired: a.repaired + b.repaired,
    damaged: a.damaged + b.damaged,
    failed: a.failed + b.failed,
    regionsUnreachable: withUnreachable(a.regionsUnreachable, b.regionsUnreachable),
  };
}

function unchanged(verdict: RepairReport["before"]): RepairReport {
  return { before: verdict, chunksWritten: 0, manifestsWritten: 0, after: verdict };
}

function add(totals: Totals, outcome: RepairOutcome): Totals {
  const found = outcome.outcome === "failed" ? [] : unreachableRegions([outcome.after]);
  return {
    ...totals,
    [outcome.outcome]: totals[outcome.outcome] + 1,
    regionsUnreachable: withUnreachable(totals.regionsUnreachable, found),
  };
}
