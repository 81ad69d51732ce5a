/**
 * `agarose sync`: makes a folder and the objects below a prefix equal.
 */
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { AgaroseError } from "@agarose/core";
import { parseKey } from "@agarose/core/format";
import { confirm, type Danger } from "../../ui/confirm.ts";
import { withContext, WRITING } from "../../lib/context.ts";
import { parseHeaders, widthOf } from "@agarose/storage/upload/put-options";
import { EXIT_FAILED, EXIT_OK, formatBytes, formatCount, logLine, printable } from "../../ui/output.ts";
import { startProgress, type ProgressReport } from "../../ui/progress.ts";
import { ReportStream } from "../../ui/report-stream.ts";
import { Filter } from "@agarose/storage/sync/filter";
import { KnownEqual } from "@agarose/storage/sync/known-equal";
import { pull } from "./pull.ts";
import { purgePops } from "../../lib/purge-pops.ts";
import { push } from "./push.ts";
import type { SyncEvent, SyncJob } from "./sync-job.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** The options of `agarose sync`. */
export type SyncOptions = Values<typeof args>;

/** How often each outcome came. */
interface Totals {
  stored: number;
  fetched: number;
  removed: number;
  /** Equal in a majority, while other regions did not answer. */
  kept: number;
  failed: number;
  /** Of what was stored or fetched. */
  bytes: number;
}

/**
 * Runs `agarose sync`. The command exits with 1 when a file failed, when it withheld removals, or when a PoP was not
 * purged.
 */
export async function sync({ source, target, ...options }: SyncOptions): Promise<number> {
  const { get = false, dryRun = false, checksum = false, follow = false, include, exclude } = options;
  const { consistency } = options;
  if (!get && consistency !== "strong") {
    throw new AgaroseError(
      "USAGE",
      `--consistency ${consistency} is for --get: what is stored is decided by a majority`,
    );
  }
  const [folder, keys] = get ? [target, source] : [source, target];
  const headers = parseHeaders(options.header);
  const job: SyncJob = {
    folder,
    prefix: prefixOf(keys),
    filter: new Filter({ include, exclude }),
    delete: options.delete ?? false,
    dryRun,
    checksum,
    follow,
    headers,
  };
  await requireFolder(folder, get);
  const width = widthOf(options.jobs);
  return withContext(options, { ...WRITING, onThrottle: () => width.throttle() }, async (context) => {
    const stream = new ReportStream(options);
    const totals: Totals = { stored: 0, fetched: 0, removed: 0, kept: 0, failed: 0, bytes: 0 };
    const { regions, encryption } = context.config;
    const encrypted = encryption.map((rule) => rule.prefix);
    const what = [get, resolve(folder), job.prefix, headers, regions.map(({ name }) => name), ...encrypted];
    const known = await KnownEqual.open(options.cache, JSON.stringify(what));
    // Where stdout is closed, the next result fails for the same cause.
    const onReport = (report: ProgressReport): void => void stream.item({ progress: report }, []).catch(() => {});
    const progress = startProgress("sync", { ...context, ...(options.jsonLines && { onReport }) });
    const own = {
      ...context,
      consistency,
      known,
      width,
      hasJobs: options.jobs !== undefined,
      progress,
      confirm: (danger: Danger) => {
        progress.stop();
        return confirm(danger, options, context.signal);
      },
      report: async (event: SyncEvent) => {
        totals[event.outcome]++;
        if ("bytes" in event) totals.bytes += event.bytes;
        await stream.item(event, [lineOf(event, dryRun)]);
      },
    };
    try {
      const { unchanged, kept, stale, skipped, notRemoved } = await (get ? pull : push)(job, own);
      totals.kept += kept;
      await (dryRun ? known.discard(undefined) : known.save());
      progress.stop();
      for (const { path, reason } of skipped) logLine(`warning: ${path} is left out: ${reason}`);
      if (notRemoved !== undefined) logLine(`warning: nothing was removed, because ${notRemoved}`);
      const pops = options.purge && !dryRun ? await purgePops(context.config, stale, job.prefix) : [];
      for (const { pop, problem } of pops) if (problem) logLine(`warning: PoP ${pop} was not purged: ${problem}`);
      const summary = { ...totals, unchanged, dryRun, skipped, ...(notRemoved && { notRemoved }), pops };
      await stream.end(summary, [summaryOf({ ...totals, unchanged }, dryRun)]);
      const isDone = totals.failed === 0 && notRemoved === undefined && pops.every(({ purged }) => purged);
      return isDone ? EXIT_OK : EXIT_FAILED;
    } catch (error) {
      await known.discard(error);
      return stream.fail(error);
    } finally {
      progress.stop();
    }
  });
}

/** A prefix that ends in `/`, so that `app` is not the beginning of `apple`. */
function prefixOf(text: string): string {
  const prefix = text.replace(/\/$/, "");
  return prefix === "" ? "" : `${parseKey(prefix)}/`;
}

async function requireFolder(folder: string, get: boolean): Promise<void> {
  const status = await stat(folder).catch(() => undefined);
  if (status?.isDirectory() || (get && status === undefined)) return;
  const hint = get ? "" : "; objects come to a folder with --get";
  throw new AgaroseError("USAGE", `${folder} is no folder${hint}`, { folder });
}

function lineOf(event: SyncEvent, dryRun: boolean): string {
  const key = printable(event.key);
  if (event.outcome === "failed") return `failed   ${key}  ${event.error.code}: ${printable(event.error.message)}`;
  if (event.outcome === "kept") return `kept     ${key}  ${event.regions.join(", ")} did not answer`;
  const outcome = dryRun ? `would be ${event.outcome}` : event.outcome;
  return `${outcome.padEnd(dryRun ? 17 : 8)} ${key}${"bytes" in event ? `  ${formatBytes(event.bytes)}` : ""}`;
}

function summaryOf(
  { stored, fetched, removed, kept, failed, unchanged, bytes }: Totals & { unchanged: number },
  dry: boolean,
) {
  const moved = stored + fetched;
  const counts = [
    `${moved} ${stored > 0 || fetched === 0 ? "stored" : "fetched"} (${formatBytes(bytes)})`,
    `${removed} removed`,
    `${unchanged} unchanged`,
    ...(kept > 0 ? [`${kept} kept`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
  ];
  return `${dry ? "dry run: " : ""}${formatCount(moved + removed + kept + unchanged + failed, "name")}: ${counts.join(", ")}`;
}
