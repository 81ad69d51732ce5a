/**
 * The help of `agarose status`.
 */
import { AgaroseError } from "@agarose/core";
import type { Command } from "commander";
import { ADMIN_TOKEN_VARIABLE } from "@agarose/storage/pops/admin-token";
import type { StatusOptions } from "./status.ts";

/** Adds `agarose status`. */
export function register(program: Command): void {
  program
    .command("status")
    .description(
      `ask every PoP for its state; ${ADMIN_TOKEN_VARIABLE}, or ${ADMIN_TOKEN_VARIABLE}_<POP>, is its ADMIN_TOKEN`,
    )
    .option("--timeout <seconds>", "how long a PoP may take", parseSeconds, 10)
    .action(async (_options: unknown, command: Command) => {
      process.exitCode = await (await import("./status.ts")).status(command.optsWithGlobals<StatusOptions>());
    });
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (seconds > 0 && seconds <= 600) return seconds;
  throw new AgaroseError("USAGE", `--timeout ${text} is not a number of seconds up to 600`);
}
