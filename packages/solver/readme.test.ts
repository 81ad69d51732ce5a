/** The examples of the README compile, run and print what the README says. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);
const SOURCE = fileURLToPath(new URL("src/index.ts", import.meta.url));
const PACKAGE = fileURLToPath(new URL(".", import.meta.url));
const TSC = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));

const readme = await readFile(new URL("README.md", import.meta.url), "utf8");
const examples = Array.from(readme.matchAll(/```ts\n(.*?)```/gs), ([, code]) => code!);

test("the README has two examples", () => {
  expect(examples.length).toBe(2);
});

test.each([
  [0, "[ 0, 0 ] 22 3 true\n"],
  [1, "backend as slow as the regions\nadaptive faster than the regions\n"],
])("example %i compiles and prints what it says", async (at, printed) => {
  const code = examples[at]!;
  for (const line of printed.trim().split("\n")) expect(code).toContain(`// ${line}`);
  const folder = await mkdtemp(join(tmpdir(), "agarose-readme-"));
  try {
    const file = join(folder, "example.ts");
    await writeFile(file, code.replace('"@agarose/solver"', JSON.stringify(SOURCE)));
    const config = {
      extends: join(PACKAGE, "tsconfig.node.json"),
      compilerOptions: { typeRoots: [join(PACKAGE, "../../node_modules/@types")] },
      include: [file],
    };
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    await run(process.execPath, [TSC, "--noEmit", "-p", folder]);
    const { stdout } = await run(process.execPath, ["--no-warnings", file]);
    expect(stdout).toBe(printed);
  } finally {
    await rm(folder, { recursive: true });
  }
});
