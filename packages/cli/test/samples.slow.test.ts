/** The sample files that documents and help texts name are right. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parseConfig } from "@agarose/storage/config/config";
import { runAgarose } from "./world.ts";

const pathOf = (name: string): string => fileURLToPath(new URL(`../samples/${name}`, import.meta.url));

async function run(verb: string, name: string): Promise<Record<string, unknown>> {
  const { code, stdout } = await runAgarose([verb, pathOf(name), "--json"]);
  expect(code).toBe(0);
  return JSON.parse(stdout.toString()) as Record<string, unknown>;
}

test("solve takes instance.json", async () => {
  // 40 for 1, 60 for 2 and 65 for 3: more than the 90 for 3 and 65 for 3 of two objects alone.
  expect(await run("solve", "instance.json")).toMatchObject({
    optimal: true,
    value: 165,
    weight: 6,
    choice: [0, 0, 1],
  });
});

test("simulate takes scenario.json", async () => {
  const { results } = (await run("simulate", "scenario.json")) as { results: { name: string; meanMs: number }[] };
  const meanMs = Object.fromEntries(results.map((row) => [row.name, row.meanMs]));
  expect(Object.keys(meanMs)).toHaveLength(5);
  expect(meanMs["adaptive"]).toBeLessThan(meanMs["backend"]!);
});

test("advise takes advice.json", async () => {
  const { advice } = (await run("advise", "advice.json")) as { advice: unknown[] };
  expect(advice.length).toBeGreaterThan(0);
});

test("advise answers from access-log.txt and the prices of advice.json, beside one copy behind a CDN", async () => {
  const args = ["advise", pathOf("advice.json"), "--trace", pathOf("access-log.txt")];
  const { code, stdout, stderr } = await runAgarose(args);
  expect(code).toBe(0);
  expect(stderr).toMatch(
    /600 reads of 60 objects in 600 lines\ntaken as \d+ reads a month of 60 objects, Zipf exponent/,
  );
  const lines = stdout.toString().trimEnd().split("\n");
  expect(lines.filter((line) => /^ +CDN /.test(line))).toHaveLength(1);
  expect(lines.at(-1)).toMatch(/^(use this|do not use this): .*behind a CDN/);
});

test("advise says not to use this for a small site that may be down", async () => {
  const folder = await mkdtemp(join(tmpdir(), "agarose-advise-"));
  try {
    const prices = JSON.parse(await readFile(pathOf("advice.json"), "utf8")) as object;
    const site = {
      data: { objects: 1_000, bytesPerObject: 100_000, readsPerMonth: 1_000_000 },
      survive: { regions: 0, providers: 0 },
    };
    await writeFile(join(folder, "site.json"), JSON.stringify({ ...prices, ...site }));
    const { code, stdout } = await runAgarose(["advise", join(folder, "site.json")]);
    expect(code).toBe(0);
    expect(stdout.toString()).toMatch(/^do not use this: one copy in [\w-]+ behind a CDN reads in .* ms for \$/m);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("agarose.config.json is a configuration", async () => {
  const path = pathOf("agarose.config.json");
  expect(parseConfig(await readFile(path, "utf8"), path).regions).toHaveLength(3);
});
