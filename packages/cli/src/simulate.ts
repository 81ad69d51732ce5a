/** `agarose simulate FILE`: compares caching policies on a scenario, or on the user's own access log. */

import { readFile } from "node:fs/promises";
import path from "node:path";
import { AgaroseError } from "@agarose/core";
import { parseScenario, resolveExtends, simulate } from "@agarose/solver";
import type { Scenario, SimulationRow } from "@agarose/solver";
import cliProgress from "cli-progress";
import type { Command } from "commander";
import { printResult } from "./output.ts";

interface SimulateOptions {
  readonly seed?: number;
  readonly runs?: number;
  readonly json?: boolean;
}

export function register(program: Command): void {
  program
    .command("simulate")
    .description("compare caching policies and systems on a scenario")
    .argument("<file>", "scenario (JSON; docs/SCENARIOS.md describes it)")
    .option("--seed <n>", "override the scenario's seed", parseCount)
    .option("--runs <n>", "override how many runs are pooled", parseCount)
    .action(async (file: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<SimulateOptions>();
      const scenario = await loadScenario(file, options);
      const results = simulateWithProgress(scenario);
      printResult(options.json ?? false, { results }, tableOf(scenario, results));
    });
}

/** Reads a scenario and what it extends, which lies beside it. */
export async function loadScenario(file: string, overrides: { seed?: number; runs?: number }): Promise<Scenario> {
  const folder = path.dirname(file);
  const resolved = await resolveExtends(await readJson(file), (name) => readJson(path.resolve(folder, name)));
  const { seed, runs } = overrides;
  return parseScenario({
    ...(resolved as object),
    ...(seed === undefined ? {} : { seed }),
    ...(runs === undefined ? {} : { runs }),
  });
}

async function readJson(file: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new AgaroseError("FILE_UNREADABLE", `cannot read ${file}: ${(error as Error).message}`, { file }, error);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AgaroseError("SCENARIO_INVALID", `${file} is not JSON: ${(error as Error).message}`, { file }, error);
  }
}

function simulateWithProgress(scenario: Scenario): SimulationRow[] {
  const now = (): number => performance.now();
  if (!process.stderr.isTTY) return simulate(scenario, { now });
  const bar = new cliProgress.SingleBar({
    stream: process.stderr,
    clearOnComplete: true,
    format: "{bar} {percentage}%",
  });
  bar.start(100, 0);
  try {
    return simulate(scenario, { now, onProgress: (done) => bar.update(Math.floor(100 * done)) });
  } finally {
    bar.stop();
  }
}

/** Column title, width, and what it shows. */
const COLUMNS: readonly [string, number, (row: SimulationRow) => string][] = [
  ["pop", 14, (row) => row.pop],
  ["mean ms", 9, (row) => row.meanMs.toFixed(1)],
  ["p50", 8, (row) => row.p50Ms.toFixed(0)],
  ["p95", 8, (row) => row.p95Ms.toFixed(0)],
  ["p99", 8, (row) => row.p99Ms.toFixed(0)],
  ["hit", 7, (row) => percent(row.hitRatio)],
  ["full hit", 9, (row) => percent(row.fullHitRatio)],
  ["chunk hit", 10, (row) => percent(row.chunkHitRatio)],
  ["req/read", 9, (row) => row.requestsPerRead.toFixed(2)],
  ["writes", 8, (row) => row.writes.toFixed(0)],
  ["solve ms", 9, (row) => row.solveMs.toFixed(3)],
  ["loss", 8, (row) => (row.lossPercent === undefined ? "" : `${row.lossPercent.toFixed(1)}%`)],
];

/** One line per system and PoP; with several PoPs the line of all of them comes last. */
export function tableOf(scenario: Scenario, rows: readonly SimulationRow[]): string[] {
  const shown = scenario.pops.length === 1 ? rows.filter((row) => row.pop === "all") : rows;
  const nameWidth = Math.max(...shown.map((row) => row.name.length), 6) + 2;
  const title = "policy".padEnd(nameWidth) + COLUMNS.map(([name, width]) => name.padStart(width)).join("");
  const lines = shown.map(
    (row) => row.name.padEnd(nameWidth) + COLUMNS.map(([, width, show]) => show(row).padStart(width)).join(""),
  );
  const failed = rows.filter((row) => row.pop === "all" && row.failedReads > 0);
  const notes = failed.map((row) => `${row.name}: ${row.failedReads} reads could not be completed`);
  return [`${scenario.name}: ${scenario.about}`, title, ...lines, ...notes];
}

function percent(ratio: number): string {
  return `${(100 * ratio).toFixed(1)}%`;
}

function parseCount(text: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count >= 0) return count;
  throw new AgaroseError("USAGE", `expected a whole number >= 0, got ${text}`, { text });
}
