/**
 * The `agarose` command: its verbs, the options that all of them take, and how errors become exit codes.
 */
import { createRequire } from "node:module";
import { Command, CommanderError } from "commander";
import { AgaroseError } from "@agarose/core";
import { addCommand, type CommandDefinition, type CommandGroup } from "./command.ts";
import { EXIT_OK, EXIT_OUTPUT_CLOSED, EXIT_USAGE, isOutputClosed, printError } from "./ui/output.ts";

/**
 * The definition of every command, in the order of the help. It loads what the command does once it is called: that
 * takes several times as long.
 */
const VERBS: Record<string, () => Promise<{ readonly command: CommandDefinition<any> | CommandGroup }>> = {
  put: () => import("./commands/put/index.ts"),
  get: () => import("./commands/get/index.ts"),
  cat: () => import("./commands/cat/index.ts"),
  ls: () => import("./commands/ls/index.ts"),
  stat: () => import("./commands/stat/index.ts"),
  share: () => import("./commands/share/index.ts"),
  cp: async () => ({ command: (await import("./commands/cp/index.ts")).copy }),
  mv: async () => ({ command: (await import("./commands/cp/index.ts")).move }),
  sync: () => import("./commands/sync/index.ts"),
  du: () => import("./commands/du/index.ts"),
  versions: () => import("./commands/versions/index.ts"),
  restore: () => import("./commands/restore/index.ts"),
  rm: () => import("./commands/rm/index.ts"),
  verify: () => import("./commands/verify/index.ts"),
  repair: () => import("./commands/repair/index.ts"),
  scrub: () => import("./commands/scrub/index.ts"),
  adopt: () => import("./commands/adopt/index.ts"),
  release: () => import("./commands/release/index.ts"),
  migrate: () => import("./commands/migrate/index.ts"),
  recode: () => import("./commands/recode/index.ts"),
  expire: () => import("./commands/expire/index.ts"),
  gc: () => import("./commands/gc/index.ts"),
  doctor: () => import("./commands/doctor/index.ts"),
  keys: () => import("./commands/keys/index.ts"),
  init: () => import("./commands/init/index.ts"),
  deploy: () => import("./commands/deploy/index.ts"),
  status: () => import("./commands/status/index.ts"),
  pop: () => import("./commands/pop/index.ts"),
  gateway: () => import("./commands/gateway/index.ts"),
  dev: () => import("./commands/dev/index.ts"),
  completion: () => import("./commands/completion/index.ts"),
  lab: () => import("./commands/lab/index.ts"),
};

/** The verbs of `lab`, which scripts call without that word, too. The help lists `lab` alone. */
const LAB_VERBS: ReadonlySet<string> = new Set(["solve", "simulate", "advise", "bench"]);

/** Runs the command line `argv` (without node and script) and returns the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  const json = argv.includes("--json");
  try {
    const program = await buildProgram(argv);
    await program.parseAsync(argv, { from: "user" });
    return Number(process.exitCode ?? EXIT_OK);
  } catch (error) {
    if (error instanceof CommanderError) return exitOfCommander(error, json);
    if (isOutputClosed(error)) return EXIT_OUTPUT_CLOSED;
    return printError(json, error);
  }
}

/** The program with the verb that `argv` calls, or with all verbs when it calls none. */
export async function buildProgram(argv: readonly string[]): Promise<Command> {
  const program = new Command("agarose")
    .description("Keep serving files from your own buckets when a region or a cloud goes down")
    .exitOverride()
    .showHelpAfterError("run `agarose --help` for all commands")
    .commandsGroup("More:")
    .helpOption("-h, --help", "show help")
    .helpCommand("help [command]", "show the help of a command, with examples and exit codes")
    .addHelpText("after", "\nRun `agarose COMMAND --help` for options, examples and exit codes.");
  const verbs = verbsOf(argv);
  // Behind a verb, --version is the verb's: restore has one.
  if (verbs.length !== 1) program.version(version(), "-V, --version", "print the version");
  for (const name of verbs) {
    const { command } = await VERBS[name]!();
    addCommand(program, command);
    if (name !== "lab" || !("commands" in command)) continue;
    for (const inner of command.commands) addCommand(program, inner, { hidden: true });
  }
  addCommonOptions(program);
  program.hook("preAction", async (_program, command) => {
    // Requests to a world on this machine need no proxy. Loaded here, because the help needs no network.
    if (wordsOf(command) !== "dev") (await import("@agarose/storage/buckets/proxies")).fetchThroughProxies(process.env);
  });
  return program;
}

/** The verbs that `argv` needs: the one that it calls, none for `--version`, else all, to be listed. */
function verbsOf(argv: readonly string[]): readonly string[] {
  if (argv[0] === "--version" || argv[0] === "-V") return [];
  const word = argv.find((candidate, index) => !candidate.startsWith("-") && argv[index - 1] !== "--config");
  if (word !== undefined && LAB_VERBS.has(word)) return ["lab"];
  return word !== undefined && Object.hasOwn(VERBS, word) ? [word] : Object.keys(VERBS);
}

function version(): string {
  const { version: own } = createRequire(import.meta.url)("../package.json") as { readonly version: string };
  return own;
}

/** The words that call a command, without the program's name. */
function wordsOf(command: Command): string {
  return command.parent ? [wordsOf(command.parent), command.name()].join(" ").trim() : "";
}

/** Adds the options of all commands, which may come before or after the verb, and names each verb's help in errors. */
function addCommonOptions(command: Command, path = command.name()): void {
  command.exitOverride();
  const has = (flag: string): boolean => command.options.some(({ long }) => long === flag);
  if (!has("--json")) command.option("--json", "print one JSON document on stdout");
  if (!has("--quiet")) command.option("-q, --quiet", "print only errors and warnings, on stderr");
  if (!has("--config")) {
    command.option(
      "--config <path>",
      "configuration, or the world.json of a local world (default: $AGAROSE_CONFIG, or agarose.config.json)",
    );
  }
  for (const inner of command.commands) {
    const name = `${path} ${inner.name()}`;
    inner.showHelpAfterError(`run \`${name} --help\` for its arguments and options`);
    addCommonOptions(inner, name);
  }
}

/** Commander has printed its message for people; with --json the error is printed as JSON too. */
function exitOfCommander(error: CommanderError, json: boolean): number {
  if (error.exitCode === 0) return EXIT_OK;
  // Without a command Commander prints the help and an error without words.
  const noCommand = error.code === "commander.help";
  const message = noCommand ? "no command: `agarose --help` lists them" : error.message.replace(/^error: /, "");
  if (json) printError(true, new AgaroseError("USAGE", message));
  return EXIT_USAGE;
}
