/** `agarose advise FILE`: which code, in which regions, with how much cache, before a byte is uploaded. */

import { readFile } from "node:fs/promises";
import { AgaroseError } from "@agarose/core";
import { advise } from "@agarose/solver";
import type { Advice, AdviceRequest } from "@agarose/solver";
import type { Command } from "commander";
import { printResult } from "../../lib/output.ts";

const SHOWN_MAX = 20;

export function register(program: Command): void {
  program
    .command("advise")
    .description("rank codes, regions and cache sizes by expected latency and monthly cost")
    .argument("<file>", "JSON of docs/reference/scenarios.md, such as samples/advice.json: regions, prices, audience")
    .action(async (file: string, _options: unknown, command: Command) => {
      const advice = advise((await readRequest(file)) as AdviceRequest);
      printResult(command.optsWithGlobals<{ json?: boolean }>().json ?? false, { advice }, linesOf(advice));
    });
}

async function readRequest(file: string): Promise<unknown> {
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

function linesOf(advice: readonly Advice[]): string[] {
  const rows = advice
    .slice(0, SHOWN_MAX)
    .map((one) => [
      one.isEfficient ? "*" : "",
      `${one.k}+${one.m}`,
      `${(100 * one.cacheShare).toFixed(0)}%`,
      one.meanMs.toFixed(1),
      one.p99Ms.toFixed(0),
      `${one.storageOverhead.toFixed(2)}x`,
      one.costPerMonth.toFixed(2),
      one.regions.join(" "),
    ]);
  const head = ["", "code", "cache", "mean ms", "p99 ms", "storage", "$/month", "regions"];
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]): string =>
    cells.map((cell, column) => (column < 7 ? cell.padStart(widths[column]!) : cell)).join("  ");
  return [line(head), ...rows.map(line), "* neither slower nor dearer than any other"];
}
