/**
 * The help of `agarose lab`: experiments with caches, codes and latencies, none of which a deployment needs.
 */
import type { Command } from "commander";
import { AgaroseError } from "@agarose/core";
import { LOG_FORMATS, READS_MAX } from "@agarose/solver/traces";
import type { GlobalOptions } from "../../lib/context.ts";
import { collect, parseFormat } from "../../ui/options.ts";
import type { AdviseOptions } from "./advise.ts";
import type { CodecOptions } from "./bench/codec.ts";
import type { SimulateOptions } from "./simulate/simulate.ts";
import type { SolveOptions } from "./solve.ts";

interface BenchOptions extends GlobalOptions {
  readonly live?: boolean;
  readonly rounds: number;
  readonly wait: number;
  readonly largest: number;
  readonly chromium?: string;
}

const ROUNDS_DEFAULT = 15;
/** Two periods of a PoP, and the time until its isolates know. */
const WAIT_SECONDS_DEFAULT = 150;
const LARGEST_DEFAULT = 8_000_000;

/** Adds `agarose lab` and its verbs, and these verbs without `lab`, as scripts call them: no help lists those. */
export function register(program: Command): void {
  const lab = program
    .command("lab")
    .helpGroup("More:")
    .description("solve, simulate, advise and bench: try caches and codes without risk");
  for (const add of [addSolve, addSimulate, addAdvise, addBench]) {
    add(lab);
    add(program, { hidden: true });
  }
}

interface CommandOptions {
  readonly hidden?: boolean;
}

function addSolve(parent: Command, options: CommandOptions = {}): void {
  parent
    .command("solve", options)
    .description("choose caching options exactly: a multiple-choice knapsack with proof")
    .argument("<file>", 'JSON {"capacity", "objects": [{"weights": [...], "values": [...]}]}, or - for standard input')
    .addHelpText("after", "\nms is a run of compiled code, as in a long-lived process; firstMs is the first run here.")
    .option("--time-limit <ms>", "stop the proof after this many milliseconds and print the gap", parseMs)
    .action(async (file: string, _options: unknown, command: Command) => {
      await (await import("./solve.ts")).solve(file, command.optsWithGlobals<SolveOptions>());
    });
}

function addSimulate(parent: Command, options: CommandOptions = {}): void {
  parent
    .command("simulate", options)
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
    .action(async (files: string[], _options: unknown, command: Command) => {
      await (await import("./simulate/simulate.ts")).run(files, command.optsWithGlobals<SimulateOptions>());
    });
}

function addAdvise(parent: Command, options: CommandOptions = {}): void {
  parent
    .command("advise", options)
    .description(
      "say whether to use coded objects: rank codes, regions and cache sizes by latency, cost and nines, beside a CDN",
    )
    .argument("<file>", "JSON of docs/reference/scenarios.md, such as samples/advice.json: regions, prices, audience")
    .option(
      "--trace <log>",
      "take objects, sizes, reads and popularity from this access log; repeatable; - is standard input",
      collect,
    )
    .option("--format <name>", `format of the log, if it is not recognised: ${LOG_FORMATS.join(", ")}`, parseFormat)
    .action(async (file: string, _options: unknown, command: Command) => {
      await (await import("./advise.ts")).adviseFor(file, command.optsWithGlobals<AdviseOptions>());
    });
}

function addBench(parent: Command, options: CommandOptions = {}): void {
  const bench = parent
    .command("bench", options)
    .description("measure from this machine")
    .option(
      "--live",
      "read from the PoPs and buckets of the configuration, in a browser; stores objects and removes them",
    )
    .option("--rounds <count>", "with --live: reads of each size and way", roundCount, ROUNDS_DEFAULT)
    .option("--wait <seconds>", "with --live: time for the PoPs to cache", wholeNumber("--wait"), WAIT_SECONDS_DEFAULT)
    .option(
      "--largest <bytes>",
      "with --live: length of the largest objects",
      wholeNumber("--largest"),
      LARGEST_DEFAULT,
    )
    .option("--chromium <path>", "with --live: the browser; default is that of Playwright")
    .action(async (_options: unknown, command: Command) => {
      const own = command.optsWithGlobals<BenchOptions>();
      if (!own.live) throw new AgaroseError("USAGE", "name what to measure: bench codec, or bench --live");
      await (await import("./bench/live.ts")).benchLive(own);
    });
  bench
    .command("codec")
    .description("the WASM codec beside other implementations, alternating in one run")
    .option("--rounds <count>", "rounds whose median counts", roundCount, ROUNDS_DEFAULT)
    .action(async (_options: unknown, command: Command) =>
      (await import("./bench/codec.ts")).benchCodec(command.optsWithGlobals<CodecOptions>()),
    );
}

function parseMs(text: string): number {
  const ms = Number(text);
  if (Number.isFinite(ms) && ms >= 0) return ms;
  throw new AgaroseError("USAGE", `--time-limit must be a number of milliseconds >= 0, got ${text}`, { text });
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

function roundCount(value: string): number {
  const rounds = Number(value);
  if (Number.isInteger(rounds) && rounds >= 1) return rounds;
  throw new AgaroseError("USAGE", `--rounds ${value} is not a whole number of 1 or more`);
}

function wholeNumber(option: string): (value: string) => number {
  return (value) => {
    if (/^\d{1,12}$/.test(value)) return Number(value);
    throw new AgaroseError("USAGE", `${option} ${value} is not a whole number, 0 or more`);
  };
}
