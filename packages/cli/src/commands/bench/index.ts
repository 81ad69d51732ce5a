/**
 * The help of `agarose bench`.
 */
import type { Command } from "commander";
import { AgaroseError } from "@agarose/core";
import type { GlobalOptions } from "../../lib/context.ts";
import type { CodecOptions } from "./codec.ts";

interface BenchOptions extends GlobalOptions {
  readonly live?: boolean;
  readonly rounds: number;
  readonly wait: number;
  readonly largest: number;
  readonly chromium?: string;
}

const ROUNDS_DEFAULT = 15;
const LIVE_ROUNDS_DEFAULT = 15;
/** Two periods of a PoP, and the time until its isolates know. */
const WAIT_SECONDS_DEFAULT = 150;
const LARGEST_DEFAULT = 8_000_000;

/** Adds `agarose bench`. */
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
    .action(async (_options: unknown, command: Command) =>
      (await import("./codec.ts")).benchCodec(command.optsWithGlobals<CodecOptions>()),
    );
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
