/** `agarose simulate FILE`: compares caching policies on a scenario, or on the user's own access log. */

import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { AgaroseError } from "@agarose/core";
import { LOG_FORMATS, simulate, TraceBuilder } from "@agarose/solver";
import type { LogFormat, Scenario, SimulationRow, Trace } from "@agarose/solver";
import cliProgress from "cli-progress";
import type { Command } from "commander";
import { logLine, printResult } from "./output.ts";
import { loadScenario, unreadable } from "./scenario-file.ts";
import { adviseLines, simulateSizes } from "./simulate/cache-sizes.ts";
import type { CacheSizes } from "./simulate/cache-sizes.ts";
import { renderHtml } from "./simulate/html.ts";
import { tableOf } from "./simulate/table.ts";

interface SimulateOptions {
  readonly seed?: number;
  readonly runs?: number;
  readonly trace?: string;
  readonly format?: LogFormat;
  readonly strict?: boolean;
  readonly cacheSizes?: number[];
  readonly html?: string;
  readonly json?: boolean;
}

export function register(program: Command): void {
  program
    .command("simulate")
    .description("compare caching policies and cache sizes on a scenario or on your own access log")
    .argument("<file>", "scenario (JSON; docs/SCENARIOS.md describes it)")
    .option("--seed <n>", "override the scenario's seed", parseCount)
    .option("--runs <n>", "override how many runs are pooled", parseCount)
    .option("--trace <log>", "replay this access log instead of drawn requests; - is standard input")
    .option("--format <name>", `format of the log: ${LOG_FORMATS.join(", ")}`, parseFormat)
    .option("--strict", "refuse the log at its first malformed line instead of skipping it")
    .option("--cache-sizes <factors>", "also try caches of so many times the size, such as 0.5,1,2,4", parseFactors)
    .option("--html <page>", "write a page with plots")
    .action(async (file: string, _options: unknown, command: Command) => {
      await run(file, command.optsWithGlobals<SimulateOptions>());
    });
}

async function run(file: string, options: SimulateOptions): Promise<void> {
  const scenario = await loadScenario(file, options);
  const trace = options.trace === undefined ? undefined : await readTrace(options.trace, options, scenario);
  const results = simulateWithProgress(scenario, trace, options.html !== undefined);
  const factors = options.cacheSizes ?? (options.html === undefined ? undefined : [0.25, 0.5, 1, 2, 4]);
  const sizes = factors && simulateSizes(scenario, factors, trace);
  if (options.html !== undefined) await writePage(options.html, renderHtml(scenario, results, sizes));
  const plain = results.map(({ quantilesMs: _plotted, ...row }) => row);
  const json = { results: plain, ...(sizes ? { bySize: sizes } : {}), ...(trace ? { trace: trace.report } : {}) };
  printResult(options.json ?? false, json, linesOf(scenario, plain, sizes));
}

function linesOf(scenario: Scenario, rows: readonly SimulationRow[], sizes: CacheSizes | undefined): string[] {
  return [...tableOf(scenario, rows), ...(sizes ? adviseLines(sizes) : [])];
}

/** Reads a log line by line, and says on stderr what of it could not be used. */
async function readTrace(file: string, { format, strict }: SimulateOptions, { requests }: Scenario): Promise<Trace> {
  if (!format) throw new AgaroseError("USAGE", `--trace needs --format: ${LOG_FORMATS.join(", ")}`);
  const builder = new TraceBuilder({ format, isStrict: strict ?? false, perSecond: requests.perSecond });
  const input = file === "-" ? process.stdin : createReadStream(file);
  const lines = createInterface({ input, crlfDelay: Infinity });
  try {
    for await (const line of lines) builder.add(line);
  } catch (error) {
    throw error instanceof Error && error.name === "AgaroseError" ? error : unreadable(file, error);
  }
  const trace = builder.finish();
  const { report } = trace;
  logLine(`${file}: ${report.reads} reads of ${trace.keys.length} objects in ${report.lines} lines`);
  if (report.malformedLines > 0) {
    logLine(`${report.malformedLines} malformed lines were skipped (--strict refuses them), such as`);
    for (const { line, problem } of report.malformed) logLine(`  line ${line}: ${problem}`);
  }
  return trace;
}

function simulateWithProgress(scenario: Scenario, trace: Trace | undefined, withQuantiles: boolean): SimulationRow[] {
  const options = { now: (): number => performance.now(), withQuantiles, ...(trace ? { trace } : {}) };
  if (!process.stderr.isTTY) return simulate(scenario, options);
  const bar = new cliProgress.SingleBar({
    stream: process.stderr,
    clearOnComplete: true,
    format: "{bar} {percentage}%",
  });
  bar.start(100, 0);
  try {
    return simulate(scenario, { ...options, onProgress: (done) => bar.update(Math.floor(100 * done)) });
  } finally {
    bar.stop();
  }
}

async function writePage(file: string, html: string): Promise<void> {
  try {
    await writeFile(file, html);
  } catch (error) {
    throw new AgaroseError("USAGE", `cannot write ${file}: ${(error as Error).message}`, { file }, error);
  }
  logLine(`wrote ${file}`);
}

function parseCount(text: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count >= 0) return count;
  throw new AgaroseError("USAGE", `expected a whole number >= 0, got ${text}`, { text });
}

function parseFormat(text: string): LogFormat {
  const format = LOG_FORMATS.find((name) => name === text);
  if (format) return format;
  throw new AgaroseError("USAGE", `--format must be one of ${LOG_FORMATS.join(", ")}, got ${text}`, { text });
}

function parseFactors(text: string): number[] {
  const factors = text.split(",").map(Number);
  if (factors.every((factor) => Number.isFinite(factor) && factor >= 0)) return factors.toSorted((a, b) => a - b);
  throw new AgaroseError("USAGE", `--cache-sizes must be numbers >= 0 with commas between, got ${text}`, { text });
}
