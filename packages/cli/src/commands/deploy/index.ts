/**
 * The help of `agarose deploy`.
 */
import type { Command } from "commander";
import type { DeployOptions } from "./deploy.ts";
import { ENV_PREFIX } from "./secret-variables.ts";

/** Adds `agarose deploy`. */
export function register(program: Command): void {
  program
    .command("deploy")
    .description(`deploy PoPs with Wrangler; secrets come from --secrets or from ${ENV_PREFIX}<NAME>`)
    .option(
      "--wrangler <path>",
      "Wrangler's configuration, one environment per PoP (default: wrangler.jsonc, or else wrangler.toml)",
    )
    .option("--pops <names>", "only these, separated by commas", (names: string) => names.split(","))
    .option("--secrets <path>", "JSON object of secrets to set; - is stdin")
    .option("--dry-run", "build, and print what would be done; needs no account")
    .action(async (_options: unknown, command: Command) => {
      await (await import("./deploy.ts")).deploy(command.optsWithGlobals<DeployOptions>());
    });
}
