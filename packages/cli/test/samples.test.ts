/** The sample files that documents and help texts name are right. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parseConfig } from "../src/lib/config.ts";
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

test("agarose.config.json is a configuration", async () => {
  const path = pathOf("agarose.config.json");
  expect(parseConfig(await readFile(path, "utf8"), path).regions).toHaveLength(3);
});
