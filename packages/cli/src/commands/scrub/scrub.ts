/**
 * `agarose scrub`: finds by listings what is missing, reads a part in full, and repairs first what is nearest to being
 * lost. With `--every` it walks again until it is asked to end.
 */
import { systemClock, toAgaroseError } from "@agarose/core";
import { withContext, WRITING, type CommandContext } from "../../lib/context.ts";
import type { RepairOutcome } from "@agarose/storage/repair/repair-outcome";
import { repairLines, unreachableLine } from "../../ui/verdict-lines.ts";
import type { KeyGroup } from "@agarose/storage/listing/key-groups";
import {
  EXIT_FAILED,
  EXIT_OK,
  failedLine,
  formatBytes,
  formatCount,
  itemLine,
  logLine,
  tableLines,
} from "../../ui/output.ts";
import { reportWalk, type ReportStream } from "../../ui/report-stream.ts";
import type { Damaged } from "@agarose/storage/maintenance/scrub/damaged-span";
import { sleep } from "@agarose/storage/commit/write-context";
import { heats, HotObjects, type HotOutcome, type HotTotals } from "@agarose/storage/maintenance/scrub/hot-objects";
import { checkMetricsPath, writeMetrics } from "@agarose/storage/maintenance/scrub/metrics";
import { UNREADABLE, type Totals } from "@agarose/storage/maintenance/scrub/totals";
import { scrubObjects } from "@agarose/storage/maintenance/scrub/scrub-objects";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

type Options = Values<typeof args>;

/** Runs `agarose scrub`. The command exits with 1 when an object stays damaged or a region did not answer. */
export async function scrub(options: Options): Promise<number> {
  const { every, metrics } = options;
  if (metrics !== undefined) await checkMetricsPath(metrics);
  return withContext(options, WRITING, async (context) => {
    const walk = (): Promise<number> => reportWalk(options, (report) => walkOnce(options, report, context));
    if (every === undefined) return walk();
    while (!context.signal.aborted) {
      const startMs = systemClock.now();
      await walk().catch((error: unknown) => {
        const { code, message } = toAgaroseError(error);
        // An error of the operator's stays until it is corrected, whereas a region returns by itself.
        if (code === "USAGE") throw error;
        logLine(`${code}: ${message}`);
      });
      await sleep(Math.max(0, startMs + every - systemClock.now()), context).catch(() => {});
    }
    return EXIT_OK;
  });
}

async function walkOnce(options: Options, report: ReportStream, context: CommandContext): Promise<number> {
  const { sample, age, every, bandwidth, budget, metrics } = options;
  const deep = { share: sample, ageMs: age, everyMs: every, bytesPerSecond: bandwidth, usd: budget };
  const startMs = Date.now();
  const hot = hotObjects(options, context);
  const see = hot && { onGroup: (group: KeyGroup) => hot.see(group) };
  const onDamaged = (object: Omit<Damaged, "isDeep">): Promise<void> => report.item(object, [damagedLine(object)]);
  const onRepair = (object: RepairOutcome): Promise<void> => report.item(object, repairLines(object));
  const walk = { ...options, ...see, deep, onDamaged, onRepair, onWarning: logLine };
  const totals = await scrubObjects(walk, context);
  // Extra chunks may take long, and a monitor waits for the walk.
  if (metrics !== undefined) await writeMetrics(metrics, totals, { startMs, endMs: Date.now() });
  const item = (object: HotOutcome): Promise<void> => report.item(object, [hotLine(object)]);
  const isWhole = totals.regionsUnreachable.length === 0;
  if (hot && !isWhole) logLine("warning: a region did not answer: no object gets or loses extra chunks");
  const heat = isWhole
    ? await hot?.settle(options.prefix ?? "", context, { dryRun: options.dryRun ?? false, item, onWarning: logLine })
    : undefined;
  const { objects: checked, ...counts } = totals;
  await report.end({ checked, ...counts, ...(heat && { hot: heat }) }, [
    ...redundancyLines(totals),
    ...totals.regionsUnreachable.map(unreachableLine),
    ...readLines(totals),
    ...(heat ? [heatLine(heat)] : []),
    summaryOf(totals),
  ]);
  return totals.damaged + totals.failed + totals.unchecked + (heat?.failed ?? 0) === 0 ? EXIT_OK : EXIT_FAILED;
}

/** Undefined where nothing says what is hot, and for a part of the objects: what is stored in all must be known. */
function hotObjects({ cursor, shard }: Options, { config }: CommandContext): HotObjects | undefined {
  if (!heats(config)) return undefined;
  if (cursor === undefined && shard === undefined) return new HotObjects();
  if (config.hot.storage > 0) logLine("notice: with --cursor or --shard, no object gets or loses extra chunks");
  return undefined;
}

function damagedLine({ state, key, chunks, chunksSound }: Omit<Damaged, "isDeep">): string {
  return itemLine(state, key, `${chunksSound} of ${chunks} chunks`);
}

function hotLine(object: HotOutcome): string {
  return object.outcome === "failed" ? failedLine(object.key, object.error) : itemLine(object.outcome, object.key);
}

function heatLine({ hot, heated, cooled, failed }: HotTotals): string {
  return `${formatCount(hot, "hot object")}: ${heated} got extra chunks, ${cooled} lost them, ${failed} failed`;
}

function readLines({ readBytes, readUsd, unread }: Totals): string[] {
  const price = readUsd > 0 ? ` for $${readUsd.toFixed(4)}` : "";
  return [
    ...(readBytes > 0 ? [`${formatBytes(readBytes)} read in full${price}`] : []),
    ...(unread > 0 ? [`${formatCount(unread, "object")} left unread: raise --budget`] : []),
  ];
}

function summaryOf({ objects, repaired, damaged, failed, unchecked }: Totals): string {
  const rest = unchecked > 0 ? `, ${unchecked} not checked in full because a region did not answer` : "";
  return `${formatCount(objects, "object")}, ${repaired} repaired, ${damaged} still damaged, ${failed} failed${rest}`;
}

/** Chunks beyond k, objects as they were found, and as they are after repairs. */
function redundancyLines({ found, left }: Totals): string[] {
  const names = [...new Set([...Object.keys(found), ...Object.keys(left)])].toSorted(compareNames);
  const rows = names.map((name) => [name, String(found[name] ?? 0), String(left[name] ?? 0)]);
  return tableLines([["chunks beyond k", "objects found", "after repairs"], ...rows], (column) => column > 0);
}

function compareNames(a: string, b: string): number {
  if (a === UNREADABLE || b === UNREADABLE) return a === UNREADABLE ? -1 : 1;
  return Number(a) - Number(b);
}
