/** `agarose lab solve` as scripts call it. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runAgarose, spawnAgarose } from "../../../test/world.ts";

let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "agarose-solve-"));
});

afterAll(() => rm(dir, { recursive: true }));

async function solve(instance: unknown, ...flags: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const file = join(dir, "instance.json");
  await writeFile(file, typeof instance === "string" ? instance : JSON.stringify(instance));
  const { code, stdout, stderr } = await runAgarose(["solve", file, ...flags]);
  return { code, stdout: stdout.toString(), stderr: stderr.toString() };
}

// Two objects and room for 3: the lighter options of both are worth 12 together, the heavy one alone 11.
const INSTANCE = {
  capacity: 3,
  objects: [
    { weights: [1, 3], values: [5, 11] },
    { weights: [2], values: [7] },
  ],
};

test("--json prints one JSON document with the choice of every object", async () => {
  const { code, stdout } = await solve(INSTANCE, "--json");
  expect(code).toBe(0);
  const { ms, firstMs, ...rest } = JSON.parse(stdout) as Record<string, unknown>;
  expect(rest).toEqual({ value: 12, weight: 3, choice: [0, 0], upperBound: 12, optimal: true });
  expect(ms).toBeTypeOf("number");
  expect(firstMs).toBeTypeOf("number");
});

test("without --json a person reads value, weight and proof", async () => {
  expect((await solve(INSTANCE)).stdout).toMatch(/^value {5}12 \(optimal\)\nweight {4}3 of 3\nobjects {3}2 of 2 /);
});

test("an instance that is none is bad usage, in JSON too", async () => {
  const { code, stdout } = await solve({ capacity: 3, objects: [{ weights: [1], values: [] }] }, "--json");
  expect([code, JSON.parse(stdout).error.code]).toEqual([2, "KNAPSACK_INVALID"]);
  expect((await solve("no JSON")).stderr).toMatch(/^KNAPSACK_INVALID: the file is not JSON/);
});

test("the instance may come from standard input", async () => {
  const { code, stdout } = await spawnAgarose(["solve", "-", "--json"], {
    stdin: Buffer.from(JSON.stringify(INSTANCE)),
  });
  expect([code, JSON.parse(stdout.toString()).value]).toEqual([0, 12]);
});
