/**
 * The help of `agarose expire`.
 */
import type { Command } from "commander";
import { CURSOR, JSON_LINES, YES } from "../../ui/options.ts";
import type { Options } from "./expire.ts";

/** Adds `agarose expire`. */
export function register(program: Command): void {
  program
    .command("expire")
    .description("remove the objects that are older than `expire` in the configuration allows")
    .option("--dry-run", "print what would be removed, and remove nothing")
    .option(...YES)
    .option(...CURSOR)
    .option(...JSON_LINES)
    .action(async (_options: unknown, command: Command) => {
      process.exitCode = await (await import("./expire.ts")).expire(command.optsWithGlobals<Options>());
    });
}
