/**
 * `agarose put`: stores files, folders and stdin as objects.
 */
import { stat } from "node:fs/promises";
import mime from "mime";
import { toAgaroseError, type AgaroseError } from "@agarose/core";
import { isTombstone, parseKey } from "@agarose/core/format";
import { withContext, WRITING, type CommandContext } from "../../lib/context.ts";
import {
  EXIT_FAILED,
  EXIT_OK,
  formatBytes,
  formatCount,
  logLine,
  printable,
  printResult,
  type OutputOptions,
} from "../../ui/output.ts";
import { startProgress, type Progress } from "../../ui/progress.ts";
import { purgePops, warnOfUnpurged, type PopPurge } from "../../lib/purge-pops.ts";
import { findAbsentKeys } from "./absent-keys.ts";
import type { InputFile, SkippedEntry } from "@agarose/storage/files/folder-entries";
import { collectInputs, spoolStdin, STDIN } from "./inputs.ts";
import { mapAdaptive } from "@agarose/storage/listing/adaptive-pool";
import { ClaimRemovals } from "@agarose/storage/commit/claim-removals";
import { shownManifest } from "@agarose/storage/encryption/opened";
import { layoutOf } from "@agarose/storage/layout/object-layout";
import { putObject, type PutObject, type PutResult } from "@agarose/storage/objects/put-object";
import { completeLate } from "@agarose/storage/repair/late-regions";
import { hashFile } from "@agarose/storage/upload/file-hash";
import { fileSource } from "@agarose/storage/upload/file-source";
import { checkManifests } from "@agarose/storage/objects/verify-object";
import { mapOrdered } from "@agarose/storage/listing/ordered-pool";
import { parseHeaders, unitsOf, widthOf } from "@agarose/storage/upload/put-options";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** The options of `agarose put`. */
export type PutOptions = Values<typeof args>;

type PutReport = PutResult | { readonly key: string; readonly outcome: "failed"; readonly error: AgaroseError };

const PLANNED_AT_A_TIME = 8;
const CONTENT_TYPE_DEFAULT = "application/octet-stream";

/**
 * Runs `agarose put FILE…`. An object is readable as a whole or not at all; the command exits with 1 when one failed.
 */
export async function put({ paths, ...options }: PutOptions): Promise<number> {
  const headers = parseHeaders(options.header);
  const { jobs } = options;
  const width = widthOf(jobs);
  return withContext(options, { ...WRITING, onThrottle: () => width.throttle() }, async (context) => {
    const { files, skipped, dotFiles } = await collectInputs(paths, options);
    for (const { path, reason } of skipped) logLine(`warning: ${path} is not stored: ${reason}`);
    if (dotFiles.length > 0) {
      logLine(`notice: ${formatCount(dotFiles.length, "dot file")} stored too, such as ${dotFiles[0]}`);
    }
    if (options.dryRun) return planPuts(files, skipped, headers, options, context);
    const progress = startProgress("put", context);
    const claimRemovals = new ClaimRemovals(context);
    const own = { ...context, claimRemovals };
    try {
      const sizes = await announceTotal(files, context, progress);
      const absent = await findAbsentKeys(
        files.map(({ key }) => key),
        context,
      );
      const reports = await mapAdaptive(
        files,
        width,
        (file) => (jobs === undefined ? unitsOf(sizes.get(file)) : 1),
        (file) => putFile(file, { headers, isAbsent: absent.has(file.key) }, options, own, progress),
      );
      await claimRemovals.flush();
      const completed = await withLateRegions(reports, context);
      const pops = options.purge ? await purgePops(context.config, replacedOf(completed)) : [];
      progress.stop();
      printReports(completed, { skipped, pops }, context);
      return reports.some(({ outcome }) => outcome === "failed") ? EXIT_FAILED : 0;
    } finally {
      progress.stop();
    }
  });
}

/** The keys of which PoPs may hold an older version: a first one has generation 1. */
function replacedOf(reports: readonly PutReport[]): string[] {
  return reports.flatMap((report) => (report.outcome === "stored" && report.generation > 1 ? [report.key] : []));
}

/** What a put would do to one key. `unchanged`: the object has this content, and `--force` is not given. */
interface Plan {
  readonly key: string;
  readonly outcome: "new" | "replaced" | "unchanged";
  /** Of the object that is there. */
  readonly generation?: number;
}

/** Prints what a put would do. It reads the files and the manifests, and writes nothing. */
async function planPuts(
  files: readonly InputFile[],
  skipped: readonly SkippedEntry[],
  headers: Record<string, string>,
  options: Omit<PutOptions, "paths">,
  context: CommandContext,
): Promise<number> {
  const plans: Plan[] = [];
  const look = (file: InputFile): Promise<Plan> => planPut(file, headers, options, context);
  for await (const plan of mapOrdered(files, PLANNED_AT_A_TIME, look)) plans.push(plan);
  const lineOf = ({ key, outcome, generation }: Plan): string =>
    `would be ${outcome.padEnd(9)}  ${printable(key)}${generation === undefined ? "" : `  generation ${generation}`}`;
  printResult(context, { objects: plans, dryRun: true, ...(skipped.length > 0 && { skipped }) }, plans.map(lineOf));
  return EXIT_OK;
}

async function planPut(
  { path, key }: InputFile,
  headers: Record<string, string>,
  options: Omit<PutOptions, "paths">,
  context: CommandContext,
): Promise<Plan> {
  parseKey(key);
  const { newest } = await checkManifests(key, context);
  if (!newest || isTombstone(newest)) return { key, outcome: "new" };
  const { generation } = newest;
  // What stdin has is not known before it is read.
  if (options.force || path === STDIN) return { key, outcome: "replaced", generation };
  const contentType = options.contentType ?? mime.getType(key) ?? CONTENT_TYPE_DEFAULT;
  const shown = await shownManifest(newest, context.config).catch(() => undefined);
  const sorted = (record: Readonly<Record<string, string>>): string =>
    JSON.stringify(Object.entries(record).toSorted());
  const isAlike = shown?.contentType === contentType && sorted(shown.headers) === sorted(headers);
  if (!isAlike) return { key, outcome: "replaced", generation };
  const reader = await fileSource(path).open();
  try {
    const { sha256 } = await hashFile(reader, context.signal, () => {});
    return { key, outcome: sha256 === shown.sha256 ? "unchanged" : "replaced", generation };
  } finally {
    await reader.close();
  }
}

/** The reports once more, after late regions have got what they were left out of. */
async function withLateRegions(reports: readonly PutReport[], context: CommandContext): Promise<PutReport[]> {
  const stored = reports.filter((report) => report.outcome !== "failed");
  const complete = await completeLate(stored, context);
  return reports.map((report) =>
    report.outcome !== "failed" && complete.has(report.key)
      ? { ...report, missing: [], regionsWithoutManifest: [] }
      : report,
  );
}

/** Stores one file. A failure is reported and does not keep the others from being stored. */
async function putFile(
  { path, key }: InputFile,
  own: Pick<PutObject, "headers" | "isAbsent">,
  options: Omit<PutOptions, "paths">,
  context: CommandContext,
  progress: Progress,
): Promise<PutReport> {
  const spooled = path === STDIN ? await spoolStdin(process.stdin, context.signal) : undefined;
  try {
    const contentType = options.contentType ?? mime.getType(key) ?? CONTENT_TYPE_DEFAULT;
    const object = {
      key,
      source: fileSource(spooled?.path ?? path),
      contentType,
      ...own,
      force: options.force ?? false,
      examine: true,
      ...(options.compress && { compress: "all" as const }),
      onBytes: (_pass: string, bytes: number) => progress.add(bytes),
    };
    return await putObject(object, context);
  } catch (error) {
    if (context.signal.aborted) throw error;
    return { key, outcome: "failed", error: toAgaroseError(error) };
  } finally {
    await spooled?.remove();
  }
}

/** Adds the total: every byte is hashed once, and n / k of it uploaded. Returns the bytes of each file. */
async function announceTotal(
  files: readonly InputFile[],
  { config }: CommandContext,
  progress: Progress,
): Promise<Map<InputFile, number>> {
  const sizes = new Map<InputFile, number>();
  for (const file of files) {
    if (file.path === STDIN) continue;
    const { size } = await stat(file.path);
    sizes.set(file, size);
    const { k, placement } = layoutOf(config, file.key, size);
    progress.addTotal(Math.round(size * (1 + placement.length / k)));
  }
  return sizes;
}

function printReports(
  reports: readonly PutReport[],
  { skipped, pops }: { readonly skipped: readonly SkippedEntry[]; readonly pops: readonly PopPurge[] },
  options: OutputOptions,
): void {
  const only = reports.length === 1 ? reports[0] : undefined;
  if (only?.outcome === "failed") throw only.error;
  const lines = reports.map((report) =>
    report.outcome === "failed"
      ? `failed     ${printable(report.key)}  ${report.error.code}: ${printable(report.error.message)}`
      : `${report.outcome.padEnd(9)}  ${printable(report.key)}  ${formatBytes(report.bytes)}  ${report.version}`,
  );
  printResult(
    options,
    { objects: reports, ...(skipped.length > 0 && { skipped }), ...(pops.length > 0 && { pops }) },
    lines,
  );
  warnOfUnpurged(pops);
  for (const report of reports) {
    if (report.outcome === "failed") continue;
    for (const { region, problem } of report.regionsWithoutManifest) {
      logLine(`warning: ${region} did not take the manifest of ${printable(report.key)}: ${problem}`);
    }
    if (report.missing.length > 0) {
      const chunks = formatCount(report.missing.length, "chunk");
      logLine(`warning: ${chunks} of ${printable(report.key)} could not be stored: run \`agarose repair\` later`);
    }
  }
}
