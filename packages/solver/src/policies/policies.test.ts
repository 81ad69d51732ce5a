import { describe, expect, test } from "vitest";
import { replay } from "../policy/replay.ts";
import { seededRandom } from "../random.ts";
import { ALL_POLICY_NAMES } from "./compared.ts";
import { packSnapshot, SnapshotReader } from "../policy/snapshot.ts";
import { describePolicy } from "../../test/policy-contract.ts";

for (const name of ALL_POLICY_NAMES) describePolicy(name);
for (const name of ["lru", "lfu", "gdsf", "w-tinylfu", "s3-fifo", "sieve"]) describePolicy(name, { chunks: 2 });

describe("snapshots", () => {
  const lists = [Float64Array.of(1, -0.5), [3, 1, 2], Float32Array.of(0.25), new Int32Array()];

  test("unpacks lists as they were packed", () => {
    const reader = new SnapshotReader("any", 5, packSnapshot("any", 5, lists));
    expect(reader.float64(2)).toEqual(lists[0]);
    expect(reader.objectList()).toEqual(lists[1]);
    expect(reader.float32()).toEqual(lists[2]);
    expect(reader.int32(0)).toEqual(lists[3]);
    reader.end();
  });

  test.each<[string, (reader: SnapshotReader) => unknown]>([
    ["another type of list", (reader) => reader.float32()],
    ["another length", (reader) => reader.float64(3)],
    ["lists left over", (reader) => reader.end()],
    [
      "a list too many",
      (reader) => [reader.float64(), reader.int32(), reader.float32(), reader.int32(), reader.int32()],
    ],
  ])("%s is SNAPSHOT_INVALID", (_name, read) => {
    const reader = new SnapshotReader("any", 5, packSnapshot("any", 5, lists));
    expect(() => read(reader)).toThrow(expect.objectContaining({ code: "SNAPSHOT_INVALID" }));
  });

  test.each([[[1, 1]], [[-1]], [[5]]])("the objects %j of five are SNAPSHOT_INVALID", (objects) => {
    const reader = new SnapshotReader("any", 5, packSnapshot("any", 5, [objects]));
    expect(() => reader.objectList()).toThrow(expect.objectContaining({ code: "SNAPSHOT_INVALID" }));
  });
});

function recorded(counts: ArrayLike<number>, seed = 1): [object: number, seconds: number][] {
  const asked: [number, number][] = [];
  const policy = { onRequest: (object: number, seconds: number) => void asked.push([object, seconds]) };
  const total = replay(policy, counts, { from: 60, to: 120 }, seededRandom(seed));
  expect(total).toBe(asked.length);
  return asked;
}

describe("replay", () => {
  test("replays every request once, spread evenly over the period", () => {
    const asked = recorded([3, 0, 1]);
    expect(asked.map(([object]) => object).toSorted()).toEqual([0, 0, 0, 2]);
    expect(asked.map(([, seconds]) => seconds)).toEqual([60, 75, 90, 105]);
  });

  test("the same randomness gives the same order, and another gives another", () => {
    const counts = Uint32Array.of(20, 20, 20);
    expect(recorded(counts)).toEqual(recorded(counts));
    expect(recorded(counts)).not.toEqual(recorded(counts, 2));
  });

  test("mixes the objects: the first half of the requests holds about half of each object's", () => {
    const firstHalf = recorded([1000, 3000]).slice(0, 2000);
    const ofFirst = firstHalf.filter(([object]) => object === 0).length;
    expect(ofFirst).toBeGreaterThan(400);
    expect(ofFirst).toBeLessThan(600);
  });

  test("replays nothing when there were no requests", () => {
    expect(recorded([0, 0])).toEqual([]);
  });

  test.each([-1, 0.5, NaN, Infinity])("a count of %d is refused", (count) => {
    expect(() => recorded([1, count])).toThrow(expect.objectContaining({ code: "SCENARIO_INVALID" }));
  });
});
