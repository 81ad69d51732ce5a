import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { buildProgram } from "../../main.ts";
import { completionOf } from "./scripts.ts";

/** The completions of bash after the words of a line, of which the last one is begun. */
async function offered(...words: string[]): Promise<string[]> {
  const script = completionOf("bash", await buildProgram([]));
  const line = ["agarose", ...words].map((word) => `'${word}'`).join(" ");
  const probe = `${script}\nCOMP_WORDS=(${line}); COMP_CWORD=${words.length}; _agarose; echo "\${COMPREPLY[*]}"`;
  return execFileSync("bash", ["-c", probe], { encoding: "utf8" }).trim().split(" ");
}

test("bash completes commands, their commands, and their options", async () => {
  expect(await offered("ver")).toEqual(["versions", "verify"]);
  expect(await offered("keys", "ro")).toEqual(["rotate"]);
  expect(await offered("keys", "rotate", "--f")).toEqual(["--finish"]);
  // Words that are arguments are no commands.
  expect(await offered("put", "get", "--pre")).toEqual(["--prefix"]);
});

test("fish and zsh name every command", async () => {
  const program = await buildProgram([]);
  for (const shell of ["fish", "zsh"] as const) {
    const script = completionOf(shell, program);
    for (const { name } of program.commands.map((command) => ({ name: command.name() })))
      expect(script).toContain(name);
  }
});
