/**
 * `agarose gc`: finds chunks that no manifest names. With --delete one run marks them, and a later one deletes them.
 */
import { confirm, sampleOf, type Danger } from "../../ui/confirm.ts";
import { withReport, WRITING, type CommandContext } from "../../lib/context.ts";
import { EXIT_FAILED, EXIT_OK, formatBytes, formatCount, itemLine, logLine, printable } from "../../ui/output.ts";
import type { ReportStream } from "../../ui/report-stream.ts";
import { WalkCursor } from "@agarose/storage/listing/walk-cursor";
import { collectGarbage, NOTHING_FOUND } from "@agarose/storage/maintenance/gc/collect-garbage";
import type { GarbageSearch, GarbageUpload } from "@agarose/storage/maintenance/gc/search";
import { durationText } from "@agarose/storage/maintenance/amounts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** Runs `agarose gc`. Ages are by the clocks of the buckets, as `--older-than` is. */
export function gc({ prefix, ...options }: Values<typeof args>): Promise<number> {
  const walk = async (report: ReportStream, context: CommandContext): Promise<number> => {
    const { stores, signal, fence, shard } = context;
    const removes = options.delete === true && options.dryRun !== true;
    const forgets = options.forgetRemoved ?? false;
    if (removes) await confirm(dangerOf(prefix, forgets, options.olderThan), options, signal);
    // Objects of a different deployment or region must not look like garbage.
    if (removes) await fence?.check();
    const part = shard && `${shard.index}/${shard.count}`;
    const name = ["gc", prefix, removes && "--delete", forgets && "--forget-removed", part].filter(Boolean).join(" ");
    const cursor = await WalkCursor.open(options.cursor, name, stores, NOTHING_FOUND);
    const { after, totals } = cursor;
    const onUpload = (upload: GarbageUpload): Promise<void> => report.item(upload, [lineOf(upload)]);
    const search: GarbageSearch = {
      prefix,
      removes,
      forgets,
      olderThanMs: options.olderThan,
      onUpload,
      ...(after !== undefined && totals && { resumed: { after, report: totals } }),
      onKey: (key, found) => cursor.pass(key, found),
    };
    const garbage = await collectGarbage(search, context);
    await cursor.end();
    const { found, bytes, skipped, leftovers } = garbage;
    const hint = hintOf(removes, found, options.olderThan);
    await report.end(garbage, [`${formatCount(found, "upload")} without a manifest, ${formatBytes(bytes)}${hint}`]);
    for (const { key, problem } of skipped) logLine(`skipped  ${printable(key)}: ${printable(problem)}`);
    for (const left of leftovers) logLine(`left     ${left.region} ${printable(left.name)}: ${left.problem}`);
    return leftovers.length + skipped.length > 0 ? EXIT_FAILED : EXIT_OK;
  };
  return withReport(options, WRITING, walk, "uploads");
}

function dangerOf(prefix: string, forgets: boolean, ageMs: number): Danger {
  const where = prefix === "" ? "of all keys" : `of keys that begin with ${sampleOf([prefix])}`;
  return {
    summary: [
      `This deletes the chunks ${where} that no manifest names and that were marked ${durationText(ageMs)} ago, and marks others.`,
      ...(forgets ? ["It also removes tombstones of 30 days, after which a bucket may replay removed objects."] : []),
    ],
    question: "Delete them?",
  };
}

function lineOf({ state, key, upload, chunks, bytes }: GarbageUpload): string {
  return itemLine(state, key, upload, `${formatCount(chunks, "chunk")}, ${formatBytes(bytes)}`);
}

function hintOf(removes: boolean, found: number, ageMs: number): string {
  if (found === 0) return "";
  return removes
    ? `: another run deletes what has been marked for ${durationText(ageMs)}`
    : ": --delete marks them for deletion";
}
