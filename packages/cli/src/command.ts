/**
 * Commands as data: name, arguments and action. The types of the values follow from the arguments and options, which
 * Commander parses.
 *
 * A help loads this module and those that define commands. So they import nothing that does the work.
 */
import { Option, type Command } from "commander";
import { AgaroseError } from "@agarose/core";
import type { OutputOptions } from "./ui/output.ts";

/** The groups of commands in the first help, in their order. */
type Category = "Objects" | "Safety" | "Deployment" | "Servers" | "More";

/** Options that all commands take. */
export interface GlobalOptions extends OutputOptions {
  readonly config?: string;
}

/** An argument or an option whose value is a T. One that is not required may be omitted, and then has no value. */
export interface Arg<T, Required extends boolean = boolean> {
  readonly kind: "positional" | "option";
  /** Placeholder for the value in a help: `<key>`, `[file]`, `<path...>`; empty for an option without one. */
  readonly value: string;
  readonly description: string;
  readonly parse?: (text: string) => unknown;
  /** As it is given: it is parsed, too. */
  readonly default?: string | undefined;
  /** Whether the option is given with `no-` before its name, and is true without it. */
  readonly negated?: boolean;
  readonly repeatable?: boolean;
  readonly choices?: readonly string[];
  /** One letter that stands for the option. */
  readonly short?: string;
  readonly required?: Required;
  /** The type of the value, which exists only in types. */
  readonly type?: T;
}

/** Arguments and options of a command, by names in camel case. Arguments are given in this order. */
export type Args = Readonly<Record<string, Arg<any>>>;

type RequiredNames<A extends Args> = { [K in keyof A]: A[K] extends Arg<any, true> ? K : never }[keyof A];
type ValueOf<A> = A extends Arg<infer T> ? T : never;

/** The values of a command's arguments and options, with the options of all commands. */
export type Values<A extends Args> = GlobalOptions & { readonly [K in RequiredNames<A>]: ValueOf<A[K]> } & {
  readonly [K in Exclude<keyof A, RequiredNames<A>>]?: ValueOf<A[K]>;
};

/** An argument: `<key>` has to be there, `[key]` may be omitted, and one that ends in `...` takes all that follow. */
export function positional<const S extends string, D extends string | undefined = undefined>(
  value: S,
  description: string,
  fallback?: D,
): S extends `${string}...${string}`
  ? Arg<readonly string[], true>
  : Arg<string, S extends `<${string}` ? true : D extends string ? true : false> {
  return { kind: "positional", value, description, default: fallback } as never;
}

/** An option without a value. */
export function flag(description: string, more: Pick<Arg<boolean>, "short"> = {}): Arg<boolean, false> {
  return { kind: "option", value: "", description, ...more };
}

/** An option that is given as `--no-NAME`, and is true without that. */
export function negatedFlag(description: string): Arg<boolean, true> {
  return { kind: "option", value: "", description, negated: true };
}

/** An option with a value, of `choices` if they are given. `parse` throws USAGE, whose message begins with the text. */
export function option<T = string>(
  value: `<${string}>` | `[${string}]`,
  description: string,
  more: {
    readonly parse?: (text: string) => T;
    readonly short?: string;
    readonly choices?: readonly (T & string)[];
  } = {},
): Arg<T, false> {
  return { kind: "option", value, description, ...more };
}

/** An option that is required, or has a value without being given. */
export function valued<T = string>(
  value: `<${string}>`,
  description: string,
  more: { readonly default?: string; readonly parse?: (text: string) => T; readonly short?: string } = {},
): Arg<T, true> {
  return { kind: "option", value, description, required: true, ...more };
}

/** An option that may be given several times. */
export function repeatable<T = string>(
  value: `<${string}>`,
  description: string,
  more: { readonly parse?: (text: string) => T } = {},
): Arg<readonly T[], true> {
  return { kind: "option", value, description, repeatable: true, ...more };
}

/** An option whose value is one of a few words, with the first of them as default. */
export function choice<const W extends string>(description: string, choices: readonly W[]): Arg<W, true> {
  return { kind: "option", value: "<word>", description, choices, default: choices[0]! };
}

/** A command without commands of its own. */
export interface CommandDefinition<A extends Args = Args> {
  readonly name: string;
  /** Absent in a group of commands, whose help lists them together. */
  readonly category?: Category;
  readonly description: string;
  /** Stands for a long description in the first help. */
  readonly summary?: string;
  /** Command lines without `agarose`, each with its effect. */
  readonly examples: readonly (readonly [string, string])[];
  readonly args: A;
  /** When the exit code is 1, beside errors. */
  readonly failsWhen?: string;
  /** Whether it reads no configuration, so that --config is refused. */
  readonly withoutConfig?: boolean;
  /** Resolves to the exit code; undefined is 0. */
  run(values: Values<A>): Promise<number | void>;
}

/** A command that consists of others. */
export interface CommandGroup {
  readonly name: string;
  readonly category: Category;
  readonly description: string;
  readonly examples: CommandDefinition["examples"];
  readonly commands: readonly CommandDefinition<any>[];
}

/** Defines a command. */
export function defineCommand<const A extends Args>(definition: CommandDefinition<A>): CommandDefinition<A> {
  return definition;
}

/** Adds a command to `parent`. */
export function addCommand(
  parent: Command,
  definition: CommandDefinition<any> | CommandGroup,
  options: { readonly hidden?: boolean } = {},
): void {
  const command = parent.command(definition.name, options).description(definition.description);
  if (definition.category !== undefined) command.helpGroup(`${definition.category}:`);
  command.addHelpText("after", () => epilogue(definition));
  if ("commands" in definition) {
    command.commandsGroup("Commands:");
    for (const inner of definition.commands) addCommand(command, inner);
    return;
  }
  const args = Object.entries(definition.args as Args);
  for (const [name, arg] of args) {
    if (arg.kind === "positional") command.argument(arg.value, arg.description, arg.default || undefined);
    else command.addOption(optionOf(name, arg));
    // As defaults of commander, a help would print them.
    if (arg.repeatable || arg.default === "") command.setOptionValue(name, arg.repeatable ? [] : "");
  }
  const names = args.flatMap(([name, { kind }]) => (kind === "positional" ? [name] : []));
  if (definition.summary !== undefined) command.summary(definition.summary);
  if (definition.withoutConfig) command.addOption(new Option("--config <path>").hideHelp());
  command.action(async (...given: unknown[]) => {
    const positionals = names.flatMap((name, at) => (given[at] === undefined ? [] : [[name, given[at]]]));
    const values: Values<any> = { ...command.optsWithGlobals(), ...Object.fromEntries(positionals) };
    // A caller would believe that it counts.
    if (definition.withoutConfig && values.config !== undefined) {
      const message = `\`agarose ${definition.name}\` reads no configuration: leave --config out`;
      throw new AgaroseError("USAGE", message);
    }
    const code = await definition.run(values);
    if (code !== undefined) process.exitCode = code;
  });
}

/** Text of the library, which quotes its options, with the flags that the command has for them. */
export function inFlags(text: string, args: Args): string {
  return text.replaceAll(/`(\w+)`/g, (quoted, name: string) =>
    args[name]?.kind === "option" ? flagOf(name, args[name]) : quoted,
  );
}

/** The same for what an error of the library says. Any other error is as it was. */
export function errorInFlags<E>(cause: E, args: Args): E | AgaroseError {
  if (!(cause instanceof AgaroseError)) return cause;
  return new AgaroseError(cause.code, inFlags(cause.message, args), cause.details, cause);
}

function flagOf(name: string, { negated }: Arg<unknown>): string {
  return `--${negated ? "no-" : ""}${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function optionOf(name: string, arg: Arg<unknown>): Option {
  const long = flagOf(name, arg);
  const short = arg.short === undefined ? "" : `-${arg.short}, `;
  const made = new Option(`${short}${long}${arg.value && ` ${arg.value}`}`, arg.description);
  const { parse = (text: string): unknown => text } = arg;
  if (arg.choices) made.choices(arg.choices);
  else if (arg.repeatable) made.argParser((text, before: unknown[]) => [...before, parsed(long, text, parse)]);
  else if (arg.parse) made.argParser((text) => parsed(long, text, parse));
  if (arg.default) made.default(parse(arg.default), arg.default);
  else if (arg.required && arg.value) made.makeOptionMandatory();
  return made;
}

/** Says of which option the value is wrong. */
function parsed(name: string, text: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof AgaroseError)) throw error;
    throw new AgaroseError(error.code as "USAGE", `${name} ${error.message}`, error.details, error);
  }
}

/** The end of a help, after the options. */
function epilogue({
  examples,
  failsWhen = "it could not be done",
}: Pick<CommandDefinition, "examples" | "failsWhen">): string {
  const width = Math.max(0, ...examples.map(([line]) => line.length));
  const lines = examples.map(([line, what]) =>
    width > 56 ? `  agarose ${line}\n      ${what}` : `  agarose ${line.padEnd(width)}  ${what}`,
  );
  const codes = ["0  when all is done", `1  when ${failsWhen}`, "2  when the arguments or the configuration are wrong"];
  return `\nExamples:\n${lines.join("\n")}\n\nExit code:\n${codes.map((code) => `  ${code}`).join("\n")}`;
}
