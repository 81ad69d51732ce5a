/** Access logs without a scenario: how they are read, and the world that they are replayed in. */

import { createReadStream } from "node:fs";
import { open, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pipeline, Readable } from "node:stream";
import { constants, createGunzip, gunzipSync } from "node:zlib";
import { AgaroseError } from "@agarose/core";
import { SolverError } from "@agarose/solver";
import { parseScenario, type Scenario } from "@agarose/solver/simulator";
import {
  guessLogFormat,
  LOG_FORMATS,
  READS_MAX,
  TraceBuilder,
  type LogFormat,
  type LogRecord,
  type Trace,
} from "@agarose/solver/traces";
import { parse as parseCsvStream, type Options as CsvOptions } from "csv-parse";
import { parse as parseCsv } from "csv-parse/sync";
import { fileUnreadable } from "@agarose/dev-world/scenario-file";
import type { ShowProgress } from "../ui/progress.ts";

const HEAD_BYTES = 65_536;
/** The cache that is tried first, as a share of all objects' bytes. */
const CACHE_SHARE = 0.05;
/** From a hundredth of all objects to all of them. */
export const LOG_FACTORS = [0.2, 0.5, 1, 2, 5, 10, 20];
/** Without an oracle, because the true popularity behind a log is unknown. */
const POLICIES = ["backend", "lru", "w-tinylfu", "adaptive"];

interface LogOptions {
  /** Default: each file's own, by its first lines. */
  readonly format: LogFormat | undefined;
  readonly isStrict: boolean;
  /** Reads per second for formats without times. */
  readonly perSecond: number;
  /** Above so many reads only a sample of the objects is kept. */
  readonly readsMax?: number;
}

/** The format of an access log, judged by its first lines; undefined for anything else, such as a scenario. */
export async function formatOfLog(file: string): Promise<LogFormat | undefined> {
  if (file === "-") return undefined;
  const lines = (await readHead(file)).split("\n").slice(0, 100);
  // The last line may be cut off.
  const whole = lines.length > 1 ? lines.slice(0, -1) : lines;
  return guessLogFormat(whole, recordsOf(whole.join("\n")));
}

/**
 * Reads logs line by line, gzipped ones too, and merges them by time.
 *
 * @throws USAGE when the format of one is neither given nor recognised, FILE_UNREADABLE, SCENARIO_INVALID.
 */
export async function readTrace(files: readonly string[], options: LogOptions, show: ShowProgress): Promise<Trace> {
  const builder = new TraceBuilder(options);
  const sizes = await Promise.all(files.map((file) => (file === "-" ? 0 : sizeOf(file))));
  const total = sizes.reduce((sum, bytes) => sum + bytes, 0);
  let done = 0;
  const onBytes = (bytes: number): void => {
    done += bytes;
    if (total > 0) show("reading the log", Math.min(1, done / total));
  };
  for (const file of files) {
    const format = options.format ?? (await formatOfLog(file));
    if (!format) {
      const formats = LOG_FORMATS.join("|");
      throw new AgaroseError("USAGE", `the format of ${file} is not recognised: give --format ${formats}`, { file });
    }
    builder.begin(file, format);
    try {
      const text = await plainText(file, onBytes);
      if (format === "csv") await addRecords(text, builder);
      else for await (const line of createInterface({ input: text, crlfDelay: Infinity })) builder.add(line);
    } catch (error) {
      throw error instanceof AgaroseError || error instanceof SolverError ? error : fileUnreadable(file, error);
    }
  }
  return builder.finish();
}

/** Says how much was read, which part of it is used, and which lines could not be used. */
export function reportLines(files: readonly string[], { report, keys, share }: Trace): string[] {
  const { reads, readsKept, malformedLines, malformed } = report;
  const objects = share < 1 ? `about ${Math.round(keys.length / share)}` : keys.length;
  const lines = [`${files.join(", ")}: ${reads} reads of ${objects} objects in ${report.lines} lines`];
  if (share < 1) {
    const percent = (part: number): string => (100 * part).toPrecision(2);
    lines.push(
      `a sample of ${keys.length} objects is used (${percent(share)}%), because more than ${READS_MAX} reads do not fit; ` +
        `it has ${percent(readsKept / reads)}% of the reads, and the two would be equal without luck in the choice`,
    );
  }
  if (malformedLines > 0) {
    lines.push(`${malformedLines} malformed lines were skipped (--strict refuses them), such as`);
    for (const { file, line, problem } of malformed) lines.push(`  ${file}, line ${line}: ${problem}`);
  }
  return lines;
}

/**
 * The first PoP of the scenario `continental`, with RS(4,2) over six providers of its continent: estimates, good enough
 * to compare policies and cache sizes by. The cache holds a twentieth of all objects.
 */
export function scenarioFor(trace: Trace, { seed = 1 }: { readonly seed?: number }): Scenario {
  const { code, regions, pops, noise } = createRequire(import.meta.url)(
    "@agarose/solver/scenarios/continental.json",
  ) as Scenario;
  const [pop] = pops;
  const bytes = trace.bytes.reduce((sum, size) => sum + size, 0) / trace.share;
  return parseScenario({
    name: "your log",
    about: "replayed over six providers of one continent (estimates); give a scenario and --trace for your own regions",
    seed,
    code,
    objects: { count: trace.keys.length, bytes: 1 },
    regions,
    pops: [{ ...pop, name: "pop", peerLatencyMs: {}, capacityBytes: Math.ceil(CACHE_SHARE * bytes) }],
    noise,
    popularity: { type: "uniform" },
    requests: { perSecond: 1, count: 1 },
    policies: POLICIES.map((name) => ({ name })),
  });
}

const CSV_OPTIONS = {
  delimiter: [",", "\t"],
  columns: (header: readonly string[]): string[] => header.map((name) => name.trim().toLowerCase()),
  // A row of another length is one malformed line, and not the end of the log.
  relax_column_count: true,
  relax_quotes: true,
  skip_empty_lines: true,
  trim: true,
  bom: true,
} as const satisfies CsvOptions;

async function addRecords(text: Readable, builder: TraceBuilder): Promise<void> {
  const records = parseCsvStream({ ...CSV_OPTIONS, info: true });
  pipeline(text, records, () => {});
  for await (const { record, info } of records as AsyncIterable<{ record: LogRecord; info: { lines: number } }>) {
    builder.add(record, info.lines);
  }
}

/** The head of a file as CSV; nothing when it is none. */
function recordsOf(text: string): LogRecord[] {
  try {
    return parseCsv(text, CSV_OPTIONS);
  } catch {
    return [];
  }
}

/** The text of a log. Gzip is known by its first bytes, because CDNs deliver it under any name. */
async function plainText(file: string, onBytes: (bytes: number) => void): Promise<Readable> {
  const input = file === "-" ? process.stdin : createReadStream(file);
  const parts = input[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const first = await parts.next();
  async function* all(): AsyncGenerator<Buffer> {
    for (let part = first; part.done !== true; part = await parts.next()) {
      onBytes(part.value.length);
      yield part.value;
    }
  }
  const bytes = Readable.from(all(), { objectMode: false });
  if (first.done === true || !isGzip(first.value)) return bytes;
  const text = createGunzip();
  pipeline(bytes, text, () => {});
  return text;
}

function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

async function readHead(file: string): Promise<string> {
  try {
    const handle = await open(file);
    try {
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
      const head = buffer.subarray(0, bytesRead);
      // The head of a member: there is no end to wait for.
      const text = isGzip(head) ? gunzipSync(head, { finishFlush: constants.Z_SYNC_FLUSH }) : head;
      return text.toString("utf8");
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw fileUnreadable(file, error);
  }
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    throw fileUnreadable(file, error);
  }
}
