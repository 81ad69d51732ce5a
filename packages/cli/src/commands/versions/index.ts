/**
 * The help of `agarose versions`.
 */
import type { Command } from "commander";
import type { GlobalOptions } from "../../lib/context.ts";

/** Adds `agarose versions KEY`. */
export function register(program: Command): void {
  program
    .command("versions")
    .description(
      "the versions of an object that a manifest in any region names or `keep` keeps, and whether their chunks are there",
    )
    .argument("<key>", "key of the object")
    .action(async (key: string, _options: unknown, command: Command) => {
      process.exitCode = await (await import("./versions.ts")).versions(key, command.optsWithGlobals<GlobalOptions>());
    });
}
