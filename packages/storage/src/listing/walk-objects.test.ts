import { expect, test } from "vitest";
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
    keys: ["a", "b", "c", "d", "e", "f", "g", "h"],
    options,
    objectsAtATime: 2,
    onWarning: () => {},
    async act(key) {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return key;
    },
    add: (keys, key) => [...keys, key],
  };
  expect(await walkObjects(walk, [], NO_REGIONS)).toEqual(walk.keys);
  expect(most).toBe(wanted);
});

test("given keys and a shard exclude each other", async () => {
  const walk: Walk<string, number> = {
    name: "test",
    keys: ["a"],
    options: {},
    objectsAtATime: 1,
    onWarning: () => {},
    act: async (key) => key,
    add: (count) => count + 1,
  };
  const context = { ...NO_REGIONS, shard: { index: 1, count: 2 } };
  await expect(walkObjects(walk, 0, context)).rejects.toMatchObject({ code: "USAGE" });
});
