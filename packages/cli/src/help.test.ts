/** The modules that a help or an error of usage loads: every module of a verb's work would make all of them slow. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

/** Prints every module that the command line `argv` loads, as lines on stderr, behind the mark. */
const HOOK = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module";
  import { writeSync } from "node:fs";
  registerHooks({ load(url, context, next) { writeSync(2, "LOADED " + url + "\\n"); return next(url, context); } });
`)}`;
const BIN = fileURLToPath(new URL("../bin/agarose.js", import.meta.url));

function run(argv: readonly string[]): { code: number | null; loaded: string[] } {
  const { stderr, status } = spawnSync(process.execPath, ["--import", HOOK, BIN, ...argv], {
    encoding: "utf8",
  });
  const loaded = [...stderr.matchAll(/^LOADED file:\/\/(.*)$/gm)].map(([, path]) => path!);
  return { code: status, loaded };
}

/** Packages of npm, and modules of ours that do the work of a verb. */
function heavyOf(loaded: readonly string[]): string[] {
  const isLight = /\/commander\/|\/packages\/core\/|\/packages\/cli\/(bin|package\.json|src\/main\.ts)/;
  const isHelp = /\/packages\/cli\/src\/(command\.ts|ui\/(args|output|units)\.ts|commands\/[a-z]+\/index\.ts)$/;
  const isValue =
    /\/packages\/(solver\/src\/(options|errors|grown|traces\/.*)\.ts|solver\/scenarios\/.*\.json|dev-world\/src\/world\/.*\.ts)$/;
  const isWord = /\/(storage\/src\/(files\/file-errors|gateway\/bucket|maintenance\/amounts|pops\/admin-token))\.ts$/;
  return loaded.filter((path) => ![isLight, isHelp, isValue, isWord].some((light) => light.test(path)));
}

test.each([[[]], [["--help"]], [["frobnicate"]]])("%j loads the helps of all verbs, and nothing that works", (argv) => {
  const { loaded } = run(argv);
  expect(loaded.filter((path) => /\/commands\/[a-z]+\/index\.ts$/.test(path)).length).toBeGreaterThan(20);
  expect(heavyOf(loaded)).toEqual([]);
});

test.each([
  [["get", "--help"], 0],
  [["get", "--outptu"], 2],
])("%j loads nothing that works", (argv, code) => {
  const result = run(argv);
  expect([result.code, heavyOf(result.loaded)]).toEqual([code, []]);
});

test("a verb that works loads its work", () => {
  const { loaded } = run(["ls", "--config", "missing.json"]);
  expect(heavyOf(loaded).some((path) => path.includes("/@aws-sdk/"))).toBe(true);
});
