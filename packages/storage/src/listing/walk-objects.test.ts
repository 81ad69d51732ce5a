import { systemClock } from "@agarose/core";
import { expect, test } from "vitest";
import { Breaker } from "../regions/ask-regions.ts";
import { walkObjects, type Walk } from "./walk-objects.ts";

/** Given keys are not listed, so that a walk over them asks no region. */
const NO_REGIONS = { stores: [] } as unknown as Parameters<typeof walkObjects>[2];

test.each([
  ["those of the walk", {}, 2],
  ["more, when `jobs` says so", { jobs: 5 }, 5],
  ["fewer, when `jobs` says so", { jobs: 1 }, 1],
])("walks over as many objects at a time as it is told: %s", async (_, options, wanted) => {
  let [running, most] = [0, 0];
  const walk: Walk<string, readonly string[]> = {
    name: "test",
    options: { keys: ["a", "b", "c", "d", "e", "f", "g", "h"], ...options },
    objectsAtATime: 2,
    async act(key) {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return key;
    },
    add: (keys, key) => [...keys, key],
  };
  expect(await walkObjects(walk, [], NO_REGIONS)).toEqual(walk.options.keys);
  expect(most).toBe(wanted);
});

test("a part that has enough while keys may be missing fails, and its cursor stays", async () => {
  const passed: string[] = [];
  const region = (name: string, isDown: boolean) => ({
    region: { name },
    async *list(prefix: string) {
      if (isDown) throw new Error("down");
      for (const key of ["a", "b"]) yield { name: `${prefix}${key}!.json`, bytes: 1, modifiedMs: 0 };
    },
  });
  const stores = [region("r0", false), region("r1", true), region("r2", true)];
  const walk: Walk<string, number> = {
    name: "test",
    options: {},
    objectsAtATime: 1,
    act: async (key) => key,
    add: (count) => count + 1,
    isEnough: () => true,
    cursor: { after: undefined, totals: 0, pass: async (key) => void passed.push(key), end: async () => {} },
  };
  const { signal } = new AbortController();
  const context = { stores, signal, clock: systemClock, breaker: new Breaker(systemClock) };
  const walked = walkObjects(walk, 0, context as unknown as typeof NO_REGIONS);
  await expect(walked).rejects.toMatchObject({ code: "NO_QUORUM", details: { answered: 1, needed: 2 } });
  expect(passed).toEqual([]);
});

test("given keys and a shard exclude each other", async () => {
  const walk: Walk<string, number> = {
    name: "test",
    options: { keys: ["a"] },
    objectsAtATime: 1,
    act: async (key) => key,
    add: (count) => count + 1,
  };
  const context = { ...NO_REGIONS, shard: { index: 1, count: 2 } };
  await expect(walkObjects(walk, 0, context)).rejects.toMatchObject({ code: "USAGE" });
});
