/**
 * `agarose bench`: the codec on this machine, or reads of the own deployment from it.
 */
import type { Command } from "commander";
import type { Work } from "@agarose/ec-wasm/bench";
import { AgaroseError } from "@agarose/core";
import type { GlobalOptions } from "../../lib/context.ts";
import { logLine, printResult } from "../../lib/output.ts";
import { formatDuration } from "../../lib/step-progress.ts";

interface CodecOptions extends GlobalOptions {
  readonly rounds: number;
}

const ROUNDS_DEFAULT = 15;

interface BenchOptions extends GlobalOptions {
  readonly live?: boolean;
  readonly rounds: number;
  readonly wait: number;
  readonly largest: number;
  readonly chromium?: string;
}

const LIVE_ROUNDS_DEFAULT = 15;
/** Two periods of a PoP, and the time until its isolates know. */
const WAIT_SECONDS_DEFAULT = 150;
const LARGEST_DEFAULT = 8_000_000;

/** Adds `agarose bench`. Figures of the codec are MB/s of object bytes on this machine. */
export function register(program: Command): void {
  const bench = program
    .command("bench")
    .description("measure from this machine")
    .option(
      "--live",
      "read from the PoPs and buckets of the configuration, in a browser; stores objects and removes them",
    )
    .option("--rounds <count>", "with --live: reads of each size and way", roundCount, LIVE_ROUNDS_DEFAULT)
    .option("--wait <seconds>", "with --live: time for the PoPs to cache", seconds, WAIT_SECONDS_DEFAULT)
    .option("--largest <bytes>", "with --live: length of the largest objects", bytes, LARGEST_DEFAULT)
    .option("--chromium <path>", "with --live: the browser; default is that of Playwright")
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<BenchOptions>();
      if (!options.live) throw new AgaroseError("USAGE", "name what to measure: bench codec, or bench --live");
      const { benchLive } = await import("./live.ts");
      await benchLive(options);
    });
  bench
    .command("codec")
    .description("the WASM codec beside other implementations, alternating in one run")
    .option("--rounds <count>", "rounds whose median counts", roundCount, ROUNDS_DEFAULT)
    .action((_options: unknown, command: Command) => benchCodec(command.optsWithGlobals<CodecOptions>()));
}

async function benchCodec({ json, rounds }: CodecOptions): Promise<void> {
  // Loaded only here: the contestants bring compilers and browsers.
  const bench = await import("@agarose/ec-wasm/bench");
  const report = await bench.benchCodec({ rounds, onWork: workLogger(bench.WORKS.length) });
  const lines = report.results.map(
    ({ op, k, m, bytes: size, lost, implementation, runtime, medianUs, mbPerSecond }) =>
      `${op} (${k},${m}) ${size} B, ${lost} lost  ${medianUs.toFixed(0).padStart(8)} us ${mbPerSecond.toFixed(0).padStart(7)} MB/s  ` +
      `${implementation} (${runtime})`,
  );
  const skipped = report.skipped.map(({ implementation, reason }) => `skipped  ${implementation}: ${reason}`);
  printResult(json ?? false, report, [...lines, ...skipped]);
}

/** Logs each piece of work when it starts, with the time left by what the pieces before it took. */
function workLogger(works: number): (work: Work) => void {
  const startedMs = performance.now();
  let started = 0;
  return ({ op, k, m, bytes: size, lost }) => {
    const leftMs = ((performance.now() - startedMs) / started) * (works - started);
    const left = started > 0 ? `, about ${formatDuration(leftMs)} left` : "";
    started++;
    logLine(`${started} of ${works}: ${op} (${k},${m}) of ${size} bytes, ${lost} lost${left}`);
  };
}

function roundCount(value: string): number {
  const rounds = Number(value);
  if (Number.isInteger(rounds) && rounds >= 1) return rounds;
  throw new AgaroseError("USAGE", `--rounds ${value} is not a whole number of 1 or more`);
}

function seconds(value: string): number {
  return wholeNumber("--wait", value);
}

function bytes(value: string): number {
  return wholeNumber("--largest", value);
}

function wholeNumber(option: string, value: string): number {
  if (/^\d{1,12}$/.test(value)) return Number(value);
  throw new AgaroseError("USAGE", `${option} ${value} is not a whole number, 0 or more`);
}
