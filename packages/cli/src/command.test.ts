/** Definitions of commands, as commander parses and shows them. */
import { Command } from "commander";
import { expect, expectTypeOf, test } from "vitest";
import {
  addCommand,
  choice,
  defineCommand,
  flag,
  negatedFlag,
  option,
  positional,
  repeatable,
  valued,
  type Values,
} from "./command.ts";
import { parseDuration } from "@agarose/storage/maintenance/amounts";
import { parseCount } from "./ui/units.ts";

const args = {
  key: positional("<key>", "a key"),
  files: positional("[file...]", "files"),
  dryRun: flag("say what would be done", { short: "n" }),
  purge: negatedFlag("leave the caches"),
  jobs: option("<count>", "at a time", { parse: parseCount({ min: 1 }) }),
  age: valued("<duration>", "how old", { parse: parseDuration(), default: "1h" }),
  header: repeatable("<line>", "a header"),
  reads: choice("how to read", ["strong", "eventual"]),
};

async function run(...argv: string[]): Promise<Values<typeof args>> {
  let got: Values<typeof args> | undefined;
  const definition = defineCommand({
    name: "act",
    category: "Objects",
    description: "acts",
    examples: [["act a", "acts on a"]],
    args,
    run: async (values) => void (got = values),
  });
  const program = new Command().exitOverride().configureOutput({ writeErr() {} });
  addCommand(program, definition);
  program.commands[0]!.exitOverride();
  await program.parseAsync(["act", ...argv], { from: "user" });
  return got!;
}

test("values have the types and the defaults of their definitions", async () => {
  expect(await run("a")).toEqual({ key: "a", files: [], purge: true, age: 3_600_000, header: [], reads: "strong" });
  type Got = Values<typeof args>;
  expectTypeOf<Got["key"]>().toEqualTypeOf<string>();
  expectTypeOf<Got["files"]>().toEqualTypeOf<readonly string[]>();
  expectTypeOf<Got["dryRun"]>().toEqualTypeOf<boolean | undefined>();
  expectTypeOf<Got["purge"]>().toEqualTypeOf<boolean>();
  expectTypeOf<Got["jobs"]>().toEqualTypeOf<number | undefined>();
  expectTypeOf<Got["age"]>().toEqualTypeOf<number>();
  expectTypeOf<Got["reads"]>().toEqualTypeOf<"strong" | "eventual">();
});

test("options are spelled with hyphens, and parsed", async () => {
  const argv = ["a", "b", "c", "-n", "--no-purge", "--jobs", "3", "--age", "2d", "--header", "x", "--header", "y"];
  expect(await run(...argv)).toMatchObject({
    key: "a",
    files: ["b", "c"],
    dryRun: true,
    purge: false,
    jobs: 3,
    age: 172_800_000,
    header: ["x", "y"],
  });
});

test("a wrong value is refused with the name of its option", async () => {
  await expect(run("a", "--jobs", "0")).rejects.toMatchObject({
    code: "USAGE",
    message: "--jobs 0 is not a whole number, 1 or more",
  });
  await expect(run("a", "--reads", "weak")).rejects.toMatchObject({ code: "commander.invalidArgument" });
});
