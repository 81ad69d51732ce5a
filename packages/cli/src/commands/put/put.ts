/** `agarose put`: stores files, folders and stdin as objects. */
import { stat } from "node:fs/promises";
import { isTombstone, parseKey } from "@agarose/core/format";
import { withContext, WRITING, type CommandContext } from "../../lib/context.ts";
import {
  EXIT_FAILED,
  EXIT_OK,
  failedLine,
  formatBytes,
  formatCount,
  logLine,
  printable,
  warnOfLacks,
} from "../../ui/output.ts";
import { printResults, type ReportOptions } from "../../ui/report-stream.ts";
import { startProgress, type Progress } from "../../ui/progress.ts";
import { purgePops, warnOfUnpurged, type PopPurge } from "../../lib/purge-pops.ts";
import type { InputFile, SkippedEntry } from "@agarose/storage/files/folder-entries";
import { collectInputs, spoolStdin, STDIN } from "./inputs.ts";
import { shownManifest } from "@agarose/storage/encryption/secrets-of";
import type { PutObject, PutResult } from "@agarose/storage/objects/put-object";
import { putOverOrigin } from "@agarose/storage/origin/read-through";
import { isFirst } from "@agarose/storage/commit/generations";
import { listKeys } from "@agarose/storage/listing/keys";
import type { DeploymentParts } from "@agarose/storage/parts";
import { contentTypeOf, headersOf, isDescribedAs } from "@agarose/storage/upload/header-rules";
import { fileSource, sha256Of } from "@agarose/storage/upload/file-source";
import { checkManifests } from "@agarose/storage/objects/verify-object";
import { mapOrdered, allOf } from "@agarose/storage/listing/adaptive-pool";
import { storeFiles, withTransfers, type KnownKey, type StoreOutcome } from "@agarose/storage/upload/transfers";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";
import { parseHeaders } from "@agarose/storage/upload/object-headers";

type Options = Values<typeof args>;

const PLANNED_AT_A_TIME = 8;

/**
 * Runs `agarose put FILE…`. An object is readable as a whole or not at all; the command exits with 1 when one failed.
 */
export async function put({ paths, ...options }: Options): Promise<number> {
  const headers = parseHeaders(options.header);
  return withContext(options, WRITING, async (context) => {
    const { files, skipped, dotFiles } = await collectInputs(paths, options);
    for (const { path, reason } of skipped) logLine(`warning: ${path} is not stored: ${reason}`);
    if (dotFiles.length > 0) {
      logLine(`notice: ${formatCount(dotFiles.length, "dot file")} stored too, such as ${dotFiles[0]}`);
    }
    if (options.dryRun) return planPuts(files, skipped, headers, options, context);
    const progress = startProgress("put", { ...context, json: options.json || (options.jsonLines ?? false) });
    try {
      const sizes = await sizesOf(files);
      const keys = files.map(({ key }) => key);
      const { absent, etags } = await listKeys(keys, context);
      const store = (file: InputFile, parts: DeploymentParts, known: KnownKey): Promise<PutResult> => {
        const own = headersOf(file.key, context.config.headers, headers);
        return putFile(file, { headers: own, ...known }, options, parts, progress);
      };
      const etagOf = ({ key }: InputFile): string | undefined => etags.get(key);
      const isAbsent = ({ key }: InputFile): boolean => absent.has(key);
      const reports = await withTransfers(options.jobs, context, (transfer) =>
        storeFiles(files, { transfer, progress, bytesOf: (file) => sizes.get(file), isAbsent, etagOf, store }, context),
      );
      const pops = options.purge ? await purgePops(context.config, replacedOf(reports)) : [];
      progress.stop();
      await printReports(reports, { skipped, pops }, options);
      return reports.some(({ outcome }) => outcome === "failed") ? EXIT_FAILED : EXIT_OK;
    } finally {
      progress.stop();
    }
  });
}

/** The bytes of each file, which are unknown for standard input. */
async function sizesOf(files: readonly InputFile[]): Promise<ReadonlyMap<InputFile, number>> {
  const sizes = new Map<InputFile, number>();
  for (const file of files) if (file.path !== STDIN) sizes.set(file, (await stat(file.path)).size);
  return sizes;
}

/** The keys of which PoPs may hold an older version. */
function replacedOf(reports: readonly StoreOutcome[]): string[] {
  return reports.flatMap((report) => (report.outcome === "stored" && !isFirst(report.generation) ? [report.key] : []));
}

/** The effect of a put on one key. `unchanged`: the object has this content, and `--force` is not given. */
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
  options: Omit<Options, "paths">,
  context: CommandContext,
): Promise<number> {
  const look = (file: InputFile): Promise<Plan> => planPut(file, headers, options, context);
  const plans = await allOf(mapOrdered(files, PLANNED_AT_A_TIME, look));
  const lineOf = ({ key, outcome, generation }: Plan): string =>
    `would be ${outcome.padEnd(9)}  ${printable(key)}${generation === undefined ? "" : `  generation ${generation}`}`;
  const summary = { dryRun: true, ...(skipped.length > 0 && { skipped }) };
  await printResults(options, plans, summary, plans.map(lineOf));
  return EXIT_OK;
}

async function planPut(
  { path, key }: InputFile,
  headers: Record<string, string>,
  options: Omit<Options, "paths">,
  context: CommandContext,
): Promise<Plan> {
  parseKey(key);
  const { newest } = await checkManifests(key, context);
  if (!newest || isTombstone(newest)) return { key, outcome: "new" };
  const { generation } = newest;
  // The content of stdin is not known before it is read.
  if (options.force || path === STDIN) return { key, outcome: "replaced", generation };
  const contentType = options.contentType ?? contentTypeOf(key);
  const shown = await shownManifest(newest, context.config).catch(() => undefined);
  const isAlike =
    shown !== undefined &&
    isDescribedAs(shown, { contentType, headers: headersOf(key, context.config.headers, headers) });
  const isSame = isAlike && (await sha256Of(path, context.signal)) === shown.sha256;
  return { key, outcome: isSame ? "unchanged" : "replaced", generation };
}

async function putFile(
  { path, key }: InputFile,
  own: Pick<PutObject, "headers"> & KnownKey,
  options: Omit<Options, "paths">,
  context: DeploymentParts,
  progress: Progress,
): Promise<PutResult> {
  const spooled = path === STDIN ? await spoolStdin(process.stdin, context.signal) : undefined;
  try {
    const object = {
      key,
      source: fileSource(spooled?.path ?? path),
      contentType: options.contentType ?? contentTypeOf(key),
      ...own,
      force: options.force ?? false,
      examine: true,
      ...(options.compress && { compress: options.compress }),
      onBytes: (_pass: string, bytes: number) => progress.add(bytes),
    };
    return await putOverOrigin(object, context);
  } finally {
    await spooled?.remove();
  }
}

async function printReports(
  reports: readonly StoreOutcome[],
  { skipped, pops }: { readonly skipped: readonly SkippedEntry[]; readonly pops: readonly PopPurge[] },
  options: ReportOptions,
): Promise<void> {
  const only = reports.length === 1 ? reports[0] : undefined;
  if (only?.outcome === "failed") throw only.error;
  const lines = reports.map((report) =>
    report.outcome === "failed"
      ? failedLine(report.key, report.error)
      : `${report.outcome.padEnd(9)}  ${printable(report.key)}  ${formatBytes(report.bytes)}  ${report.version}`,
  );
  const summary = { ...(skipped.length > 0 && { skipped }), ...(pops.length > 0 && { pops }) };
  await printResults(options, reports, summary, lines);
  warnOfUnpurged(pops);
  for (const report of reports) if (report.outcome !== "failed") warnOfLacks(report);
}
