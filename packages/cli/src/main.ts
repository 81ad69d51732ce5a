/**
 * The `agarose` command: its verbs, the options that all of them take, and how errors become exit codes.
 */
import { Command, CommanderError } from "commander";
import { toAgaroseError } from "@agarose/core";
import { EXIT_USAGE, printError } from "./output.ts";
import { register as registerGet } from "./get.ts";
import { register as registerPut } from "./put.ts";

/** Verbs whose dependencies are heavy are loaded only when they are called for, or listed. */
type Register = (program: Command) => void;

const VERBS: Record<string, () => Promise<Register>> = {
  put: async () => registerPut,
  get: async () => registerGet,
  dev: async () => (await import("./dev/dev.ts")).register,
};

/** Runs the command line `argv` (without node and script) and returns the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  const json = argv.includes("--json");
  try {
    const program = await buildProgram(argv);
    await program.parseAsync(argv, { from: "user" });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) return exitOfCommander(error, json);
    return printError(json, error);
  }
}

async function buildProgram(argv: readonly string[]): Promise<Command> {
  const program = new Command("agarose")
    .description("Erasure-coded storage that is as fast to read as a replica next door")
    .exitOverride()
    .showHelpAfterError("run `agarose --help` for all commands");
  const asked = argv.find((word) => word in VERBS);
  const names = asked && !argv.includes("help") ? [asked] : Object.keys(VERBS);
  for (const name of names) (await VERBS[name]!())(program);
  for (const command of [program, ...program.commands]) addCommonOptions(command);
  return program;
}

function addCommonOptions(command: Command): void {
  command.exitOverride();
  const has = (flag: string): boolean => command.options.some(({ long }) => long === flag);
  if (!has("--json")) command.option("--json", "print one JSON document on stdout");
  if (!has("--config")) command.option("--config <path>", "configuration file (default: agarose.json)");
}
function exitOfCommander(error: CommanderError, json: boolean): number {
  if (error.exitCode === 0) return 0;
  if (json)
    printError(
      true,
      toAgaroseError(Object.assign(new Error(error.message), { name: "AgaroseError", code: "USAGE", details: {} })),
    );
  return EXIT_USAGE;
}
