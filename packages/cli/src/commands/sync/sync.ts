/** `agarose sync`: makes a folder and the objects below a prefix equal. */
import { AgaroseError } from "@agarose/core";
import { isFirst } from "@agarose/storage/commit/generations";
import type { SkippedEntry } from "@agarose/storage/files/folder-entries";
import { prefixOf, syncFolder } from "@agarose/storage/sync/sync-folder";
import type { SyncEnd, SyncOutcome, SyncRemoval, SyncTotals } from "@agarose/storage/sync/sync-job";
import { errorInFlags, inFlags, type Values } from "../../command.ts";
import { withContext, WRITING } from "../../lib/context.ts";
import { purgePops } from "../../lib/purge-pops.ts";
import { confirm, sampleOf, type Danger } from "../../ui/confirm.ts";
import {
  EXIT_FAILED,
  EXIT_OK,
  failedLine,
  formatBytes,
  formatCount,
  itemLine,
  logLeftover,
  logLine,
} from "../../ui/output.ts";
import { startProgress, type ProgressReport } from "../../ui/progress.ts";
import { ReportStream } from "../../ui/report-stream.ts";
import { args } from "./index.ts";
import { parseHeaders } from "@agarose/storage/upload/object-headers";

/** How often each outcome came, and how many bytes were stored or fetched. */
type Counts = Record<"stored" | "fetched" | "removed" | "kept" | "failed" | "bytes", number>;

/**
 * Runs `agarose sync`. The command exits with 1 when a file failed, when it withheld removals, or when a PoP was not
 * purged.
 */
export async function sync({
  source,
  target,
  get = false,
  dryRun = false,
  ...options
}: Values<typeof args>): Promise<number> {
  const place = get ? target : prefixOf(target);
  return withContext(options, WRITING, async (context) => {
    const stream = new ReportStream(options);
    const counts: Counts = { stored: 0, fetched: 0, removed: 0, kept: 0, failed: 0, bytes: 0 };
    const skipped: SkippedEntry[] = [];
    /** Keys of which PoPs may have another version. */
    const stale: string[] = [];
    const report = async (outcome: SyncOutcome): Promise<void> => {
      if (outcome.outcome === "skipped") {
        skipped.push({ path: outcome.path, reason: inFlags(outcome.reason, args) });
        return;
      }
      counts[outcome.outcome]++;
      if ("bytes" in outcome) counts.bytes += outcome.bytes;
      const isReplaced = outcome.outcome === "stored" && !isFirst(outcome.generation ?? 0);
      if (isReplaced || (outcome.outcome === "removed" && !get)) stale.push(outcome.key);
      const shown = outcome.outcome === "failed" ? { ...outcome, error: errorInFlags(outcome.error, args) } : outcome;
      await stream.item({ ...shown, generation: undefined }, [lineOf(shown, dryRun)]);
    };
    // Where stdout is closed, the next result fails for the same cause.
    const onReport = (now: ProgressReport): void => void stream.item({ progress: now }, []).catch(() => {});
    const progress = startProgress("sync", { ...context, ...(options.jsonLines && { onReport }) });
    try {
      const ends: [SyncEnd, SyncEnd] = get
        ? [{ prefix: source }, { folder: target }]
        : [{ folder: source }, { prefix: target }];
      const how = {
        ...options,
        dryRun,
        delete: options.delete === true || options.deleteAfter !== undefined,
        headers: parseHeaders(options.header),
        progress,
        confirm: (removal: SyncRemoval): Promise<void> => {
          progress.stop();
          return confirm(dangerOf(removal, place, get), options, context.signal);
        },
        onWarning: logLine,
        onIncomplete: (objects: number): void => {
          const what = `${formatCount(objects, "object")} not whole in every region`;
          logLine(`warning: ${what}: run \`agarose repair --queued\` later`);
        },
        onLeftover: logLeftover,
      };
      const { notRemoved, ...totals } = await syncFolder(...ends, how, report, context);
      progress.stop();
      for (const { path, reason } of skipped) logLine(`warning: ${path} is left out: ${reason}`);
      if (notRemoved !== undefined) logLine(`warning: nothing was removed, because ${notRemoved}`);
      const pops = options.purge && !dryRun ? await purgePops(context.config, stale, place) : [];
      for (const { pop, problem } of pops) if (problem) logLine(`warning: PoP ${pop} was not purged: ${problem}`);
      const sums = { ...counts, ...totals };
      await stream.end({ ...sums, dryRun, skipped, ...(notRemoved && { notRemoved }), pops }, [
        summaryOf(sums, dryRun),
      ]);
      const isDone = counts.failed === 0 && notRemoved === undefined && pops.every(({ purged }) => purged);
      return isDone ? EXIT_OK : EXIT_FAILED;
    } catch (cause) {
      const error = errorInFlags(cause, args);
      if (!get && error instanceof AgaroseError && "folder" in error.details) {
        error.message += "; use --get to download into a folder";
      }
      return stream.fail(error);
    } finally {
      progress.stop();
    }
  });
}

/** The deletions that `--delete` is about to make. */
function dangerOf({ names, isTotal }: SyncRemoval, place: string, get: boolean): Danger {
  const what = formatCount(names.length, get ? "file" : "object");
  const where = get ? place : place === "" ? "the deployment" : JSON.stringify(place);
  const extent = isTotal ? `everything that is in ${where}: ${what}` : `${what} from ${where}`;
  return { summary: [`--delete removes ${extent}, such as ${sampleOf(names)}.`], question: `Remove ${what}?`, isTotal };
}

type ShownOutcome = Exclude<SyncOutcome, { readonly outcome: "skipped" }>;

function lineOf(event: ShownOutcome, dryRun: boolean): string {
  const { key, outcome } = event;
  if (outcome === "failed") return failedLine(key, event.error);
  if (outcome === "kept") return itemLine(outcome, key, `${event.regions.join(", ")} did not answer`);
  return itemLine(
    dryRun ? `would be ${outcome}` : outcome,
    key,
    ...("bytes" in event ? [formatBytes(event.bytes)] : []),
  );
}

function summaryOf(
  {
    stored,
    fetched,
    removed,
    kept,
    failed,
    unchanged,
    waiting = 0,
    bytes,
  }: Counts & Pick<SyncTotals, "unchanged" | "waiting">,
  dry: boolean,
) {
  const moved = stored + fetched;
  const counts = [
    `${moved} ${stored > 0 || fetched === 0 ? "stored" : "fetched"} (${formatBytes(bytes)})`,
    `${removed} removed`,
    `${unchanged} unchanged`,
    ...(waiting > 0 ? [`${waiting} waiting to be removed`] : []),
    ...(kept > 0 ? [`${kept} kept`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
  ];
  return `${dry ? "dry run: " : ""}${formatCount(moved + removed + kept + unchanged + failed, "file")}: ${counts.join(", ")}`;
}
