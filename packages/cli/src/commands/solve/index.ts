/**
 * The help of `agarose solve`.
 */
import { AgaroseError } from "@agarose/core";
import type { Command } from "commander";
import type { SolveOptions } from "./solve.ts";

/** Adds `agarose solve FILE`. */
export function register(program: Command): void {
  program
    .command("solve")
    .description("choose caching options exactly: a multiple-choice knapsack with proof")
    .argument("<file>", 'JSON {"capacity", "objects": [{"weights": [...], "values": [...]}]}, or - for standard input')
    .addHelpText("after", "\nms is a run of compiled code, as in a long-lived process; firstMs is the first run here.")
    .option("--time-limit <ms>", "stop the proof after this many milliseconds and print the gap", parseMs)
    .action(async (file: string, _options: unknown, command: Command) => {
      await (await import("./solve.ts")).solve(file, command.optsWithGlobals<SolveOptions>());
    });
}

function parseMs(text: string): number {
  const ms = Number(text);
  if (Number.isFinite(ms) && ms >= 0) return ms;
  throw new AgaroseError("USAGE", `--time-limit must be a number of milliseconds >= 0, got ${text}`, { text });
}
