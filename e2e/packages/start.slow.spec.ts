/**
 * The page for a newcomer, as it is written: its commands run in an empty folder, npm gets the packages as tarballs,
 * and a browser opens what the page says to open.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { blocksOf, OUTSIDE, withoutFigures } from "../../scripts/docs/blocks.ts";
import type { PackedPackage } from "../../scripts/release/packages.ts";
import { NO_NETWORK } from "../libraries/unpacked.ts";
import { environment, pack, ROOT } from "./packed.ts";
import { startRegistry } from "./registry.ts";
import { expect, test } from "@playwright/test";

const PAGE = "docs/start.md";
/** The reader's action between two blocks, by a word of the block before. */
const WAITS: readonly (readonly [word: string, command: string])[] = [
  ["npm run dev", "until [ -s world.json ]; do kill -0 %1; sleep 1; done"],
];
/** Instead of a desktop's browser: says which address is wanted, and waits until that was looked at. */
const OPEN =
  '#!/bin/sh\necho "$1" > "$SHIMS/opened.part"\nmv "$SHIMS/opened.part" "$SHIMS/opened"\n' +
  'until [ -e "$SHIMS/seen" ]; do sleep 0.2; done\n';

let packed: readonly PackedPackage[];
let folder: string;

test.beforeAll(async () => {
  test.setTimeout(600_000);
  packed = await pack("npm-start");
  folder = await mkdtemp(join(tmpdir(), "agarose-start-"));
});

test.afterAll(() => rm(folder, { recursive: true, force: true }));

test("five commands lead from an empty folder to a picture of one's own on a page", async ({ page }) => {
  test.setTimeout(900_000);
  const blocks = blocksOf(PAGE, await readFile(join(ROOT, PAGE), "utf8")).filter(({ comment }) => comment === OUTSIDE);
  const first = blocks.slice(0, 4).flatMap(({ code }) => code.trim().split("\n"));
  expect(first).toHaveLength(5);
  expect(first[4]).toMatch(/^xdg-open /);

  const [empty, shims] = [join(folder, "empty"), join(folder, "shims")];
  await Promise.all([mkdir(empty), mkdir(shims)]);
  await writeFile(join(shims, "xdg-open"), OPEN);
  await chmod(join(shims, "xdg-open"), 0o755);
  const registry = await startRegistry(packed, npmRegistry());
  const steps = blocks.flatMap(({ code }) => [
    code,
    ...WAITS.filter(([word]) => code.includes(word)).map(([, c]) => c),
  ]);
  const script = ["set -emuo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", ...steps].join("\n");
  const env = environment();
  const child = spawn("bash", ["-c", script], {
    cwd: empty,
    env: {
      ...env,
      PATH: [shims, env["PATH"]].join(delimiter),
      SHIMS: shims,
      CLONE: ROOT,
      TARBALLS: dirname(packed[0]!.tarball),
      npm_config_registry: registry.url,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part: Buffer) => (output += part.toString()));
  const ended = once(child, "close") as Promise<[number | null]>;
  try {
    const opened = join(shims, "opened");
    const code = await Promise.race([ended.then(([status]) => status), untilExists(opened)]);
    test.skip(code !== "exists" && NO_NETWORK.test(output), "npm has no network");
    expect(code, output).toBe("exists");
    await page.goto((await readFile(opened, "utf8")).trim());
    await expect(page.getByAltText("pictures/mine.jpg")).not.toHaveJSProperty("naturalWidth", 0);
    await expect(page.locator("#status")).toContainText("bytes (");
    await writeFile(join(shims, "seen"), "");
    expect(await ended, output).toEqual([0, null]);
  } finally {
    child.kill();
    await registry.close();
  }
  const printed = withoutFigures(output);
  const shown = blocks.flatMap((block) => withoutFigures(block.shown ?? "")).filter((line) => line !== "");
  expect(shown.length).toBeGreaterThan(2);
  expect(
    shown.filter((line) => !printed.includes(line)),
    output,
  ).toEqual([]);
});

async function untilExists(path: string): Promise<"exists"> {
  while (!existsSync(path)) await new Promise((resolve) => setTimeout(resolve, 200));
  return "exists";
}

function npmRegistry(): string {
  return execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).trim();
}
