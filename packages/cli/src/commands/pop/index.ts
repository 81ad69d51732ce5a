/**
 * The help of `agarose pop`.
 */
import type { Command } from "commander";
import type { PopCommandOptions } from "./pop.ts";

/** Adds `agarose pop`. */
export function register(program: Command): void {
  program
    .command("pop")
    .argument("[name]", "name of the PoP, unless the variable POP says it")
    .description("run one PoP on this machine: the Worker's application with a cache on disk and state in SQLite")
    .requiredOption("--data <folder>", "folder of the chunk cache and the state; one process at a time may use it")
    .option("--listen <address>", "host and port to listen on", "127.0.0.1:8787")
    .option("--vars <file>", "JSON object of the Worker's variables and secrets; the environment overrides it")
    .option("--behind-proxy", "take the client's address from the last entry of X-Forwarded-For")
    .action(async (name: string | undefined, _options: unknown, command: Command) => {
      process.exitCode = await (await import("./pop.ts")).pop(name, command.optsWithGlobals<PopCommandOptions>());
    });
}
