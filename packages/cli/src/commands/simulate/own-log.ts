/** An access log alone, without a scenario: what kind of log it is, and the world that it is replayed in. */

import { createReadStream } from "node:fs";
import { open, stat } from "node:fs/promises";
import { createInterface } from "node:readline";
import { AgaroseError } from "@agarose/core";
import { guessLogFormat, LOG_FORMATS, parseScenario, TraceBuilder } from "@agarose/solver";
import type { LogFormat, Scenario, Trace } from "@agarose/solver";
import { unreadable } from "../../lib/scenario-file.ts";
import type { ShowProgress } from "../../lib/step-progress.ts";

const HEAD_BYTES = 65_536;
/** The cache that is tried first, as a share of all objects' bytes. */
const CACHE_SHARE = 0.05;
/** From a hundredth of all objects to all of them. */
export const LOG_FACTORS = [0.2, 0.5, 1, 2, 5, 10, 20];
/** Without an oracle, because the true popularity behind a log is unknown. */
const POLICIES = ["backend", "lru", "w-tinylfu", "adaptive"];

/** How to read an access log. */
export interface LogOptions {
  readonly format: LogFormat | undefined;
  readonly isStrict: boolean;
  /** Reads per second for formats without times. */
  readonly perSecond: number;
}

/** The format of an access log, judged by its first lines; undefined for anything else, such as a scenario. */
export async function formatOfLog(file: string): Promise<LogFormat | undefined> {
  if (file === "-") return undefined;
  const lines = (await readHead(file)).split("\n").slice(0, 100);
  // The last line may be cut off.
  return guessLogFormat(lines.length > 1 ? lines.slice(0, -1) : lines);
}

/** Reads a log line by line. Throws USAGE when its format is neither given nor recognised. */
export async function readTrace(file: string, options: LogOptions, show: ShowProgress): Promise<Trace> {
  const format = options.format ?? (await formatOfLog(file));
  if (!format)
    throw new AgaroseError("USAGE", `the format of ${file} is not recognised: give --format ${LOG_FORMATS.join("|")}`);
  const builder = new TraceBuilder({ format, isStrict: options.isStrict, perSecond: options.perSecond });
  const bytes = file === "-" ? 0 : await sizeOf(file);
  const input = file === "-" ? process.stdin : createReadStream(file);
  let done = 0;
  if (bytes > 0) input.on("data", (part: Buffer) => show("reading the log", (done += part.length) / bytes));
  try {
    for await (const line of createInterface({ input, crlfDelay: Infinity })) builder.add(line);
  } catch (error) {
    throw error instanceof Error && error.name === "AgaroseError" ? error : unreadable(file, error);
  }
  return builder.finish();
}

/** Returns the format of that name. Throws USAGE for any other. */
export function parseFormat(text: string): LogFormat {
  const format = LOG_FORMATS.find((name) => name === text);
  if (format) return format;
  throw new AgaroseError("USAGE", `--format must be one of ${LOG_FORMATS.join(", ")}, got ${text}`, { text });
}

/** Says how much was read, and which lines could not be used. */
export function reportLines(file: string, { report, keys }: Trace): string[] {
  const lines = [`${file}: ${report.reads} reads of ${keys.length} objects in ${report.lines} lines`];
  if (report.malformedLines > 0) {
    lines.push(`${report.malformedLines} malformed lines were skipped (--strict refuses them), such as`);
    for (const { line, problem } of report.malformed) lines.push(`  line ${line}: ${problem}`);
  }
  return lines;
}

/**
 * One PoP and RS(4,2) over six providers of its continent, as in `continental.json`: estimates, good enough to compare
 * policies and cache sizes by. The cache holds a twentieth of all objects.
 */
export function scenarioFor(trace: Trace, { seed = 1 }: { readonly seed?: number }): Scenario {
  const bytes = trace.bytes.reduce((sum, size) => sum + size, 0);
  return parseScenario({
    name: "your log",
    about: "replayed over six providers of one continent (estimates); give a scenario and --trace for your own regions",
    seed,
    code: { k: 4, m: 2 },
    objects: { count: trace.keys.length, bytes: 1 },
    regions: ["s3-frankfurt", "s3-ireland", "r2-eu", "gcs-belgium", "b2-amsterdam", "wasabi-milan"],
    pops: [
      {
        name: "pop",
        regionLatencyMs: {
          "s3-frankfurt": 9,
          "s3-ireland": 28,
          "r2-eu": 12,
          "gcs-belgium": 11,
          "b2-amsterdam": 13,
          "wasabi-milan": 17,
        },
        regionMbitPerSecond: 200,
        cacheLatencyMs: 4,
        capacityBytes: Math.ceil(CACHE_SHARE * bytes),
      },
    ],
    noise: { lognormalSigma: 0.4, stragglerProbability: 0.02, stragglerFactor: 10, stragglersShared: "region" },
    popularity: { type: "uniform" },
    requests: { perSecond: 1, count: 1 },
    policies: POLICIES.map((name) => ({ name })),
  });
}

async function readHead(file: string): Promise<string> {
  try {
    const handle = await open(file);
    try {
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
      return buffer.toString("utf8", 0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw unreadable(file, error);
  }
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    throw unreadable(file, error);
  }
}
