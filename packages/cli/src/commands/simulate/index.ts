/**
 * The help of `agarose simulate`.
 */
import { AgaroseError } from "@agarose/core";
import type { Command } from "commander";
import { LOG_FORMATS, READS_MAX } from "@agarose/solver/traces";
import { collect, parseFormat } from "../../ui/options.ts";
import type { SimulateOptions } from "./simulate.ts";

/** Adds `agarose simulate FILE...`. */
export function register(program: Command): void {
  program
    .command("simulate")
    .description("compare caching policies and cache sizes on a scenario or on your own access log")
    .argument(
      "<file...>",
      "access logs, plain or gzipped, or one scenario of docs/reference/scenarios.md, such as samples/scenario.json",
    )
    .option("--seed <n>", "override the scenario's seed", parseCount)
    .option("--runs <n>", "override how many runs are pooled", parseCount)
    .option(
      "--trace <log>",
      "replay this access log instead of drawn requests; - is standard input; several times for several logs",
      collect,
    )
    .option("--format <name>", `format of the log, if it is not recognised: ${LOG_FORMATS.join(", ")}`, parseFormat)
    .option(
      "--reads-max <n>",
      `keep about this many reads of a longer log, by a sample of its objects (default ${READS_MAX})`,
      parseCount,
    )
    .option("--strict", "refuse the log at its first malformed line instead of skipping it")
    .option(
      "--cache-sizes <factors>",
      "also try caches of these multiples of the size, such as 0.5,1,2,4",
      parseFactors,
    )
    .option("--html <page>", "write a page with plots")
    .option("--write-test <spec>", "write a Playwright test that reads in the scenario's world, and compares")
    .action(async (files: string[], _options: unknown, command: Command) => {
      await (await import("./simulate.ts")).run(files, command.optsWithGlobals<SimulateOptions>());
    });
}

function parseCount(text: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count >= 0) return count;
  throw new AgaroseError("USAGE", `expected a whole number >= 0, got ${text}`, { text });
}

function parseFactors(text: string): number[] {
  const factors = text.split(",").map(Number);
  if (factors.every((factor) => Number.isFinite(factor) && factor >= 0)) return factors.toSorted((a, b) => a - b);
  throw new AgaroseError("USAGE", `--cache-sizes must be numbers >= 0 with commas between, got ${text}`, { text });
}
