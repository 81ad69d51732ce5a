/**
 * `agarose bench`: measurements that run on this machine alone.
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

/** Adds `agarose bench`. Figures are MB/s of object bytes on this machine. */
export function register(program: Command): void {
  program
    .command("bench")
    .description("measure on this machine")
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
    ({ op, k, m, bytes, lost, implementation, runtime, medianUs, mbPerSecond }) =>
      `${op} (${k},${m}) ${bytes} B, ${lost} lost  ${medianUs.toFixed(0).padStart(8)} us ${mbPerSecond.toFixed(0).padStart(7)} MB/s  ` +
      `${implementation} (${runtime})`,
  );
  const skipped = report.skipped.map(({ implementation, reason }) => `skipped  ${implementation}: ${reason}`);
  printResult(json ?? false, report, [...lines, ...skipped]);
}

/** Logs each piece of work when it starts, with the time left by what the pieces before it took. */
function workLogger(works: number): (work: Work) => void {
  const startedMs = performance.now();
  let started = 0;
  return ({ op, k, m, bytes, lost }) => {
    const leftMs = ((performance.now() - startedMs) / started) * (works - started);
    const left = started > 0 ? `, about ${formatDuration(leftMs)} left` : "";
    started++;
    logLine(`${started} of ${works}: ${op} (${k},${m}) of ${bytes} bytes, ${lost} lost${left}`);
  };
}

function roundCount(value: string): number {
  const rounds = Number(value);
  if (Number.isInteger(rounds) && rounds >= 1) return rounds;
  throw new AgaroseError("USAGE", `--rounds ${value} is not a whole number of 1 or more`);
}
