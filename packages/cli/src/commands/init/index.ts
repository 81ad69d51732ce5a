/**
 * The help of `agarose init`.
 */
import { AgaroseError } from "@agarose/core";
import type { Command } from "commander";
import type { InitOptions } from "./init.ts";

/** Adds `agarose init [FOLDER]`. */
export function register(program: Command): void {
  program
    .command("init")
    .description("write the service worker's files and a client configuration into a web app's folder of static files")
    .argument("[folder]", "folder served at the root of the app's origin; default that of the framework, or public")
    .option("--dry-run", "say which files would be written, and the lines for files of your own; write nothing")
    .option("--prefix <path>", "path prefix that is read through Agarose", parsePrefix, "/ec/")
    .option("--force", "replace an existing client configuration, or another wrangler.jsonc")
    .option("--remove", "replace the service worker by one that unregisters itself and deletes what it has stored")
    .option("--worker", "write wrangler.jsonc of the PoPs instead, into the folder or else the working directory")
    .option("--dev-vars", "write .dev.vars instead, by which `wrangler dev` reads the buckets of this configuration")
    .option("--everywhere", "with --worker: one Worker for all continents, instead of PoPs with places")
    .option("--analytics", "with --worker: write totals to Workers Analytics Engine, once it is enabled in the account")
    .action(async (folder: string | undefined, _options: unknown, command: Command) => {
      await (await import("./init.ts")).init(folder, command.optsWithGlobals<InitOptions>());
    });
}

function parsePrefix(prefix: string): string {
  if (/^\/([^/?#]+\/)+$/.test(prefix)) return prefix;
  throw new AgaroseError("USAGE", `--prefix ${prefix} is not a path such as /ec/, with a slash at both ends`, {
    prefix,
  });
}
