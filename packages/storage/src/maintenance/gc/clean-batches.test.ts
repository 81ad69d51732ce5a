import { beforeEach, expect, test } from "vitest";
import { encodeManifest, manifestName, sealTombstone } from "@agarose/core/format";
import { MemoryBucket } from "../../../test/memory-bucket.ts";
import type { Store } from "../../buckets/store.ts";
import { claimBatch } from "../../commit/batches.ts";
import { emptySurvey } from "../../regions/region-survey.ts";
import { writeContextOf } from "../../commit/write-context.ts";
import { cleanBatches, collectGarbage, NOTHING_FOUND } from "./collect-garbage.ts";
import type { ViewContext } from "./key-view.ts";
import type { GarbageReport, Mutable } from "./search.ts";

const KEYS = ["a", "b"];
const HOUR_MS = 3_600_000;
const { signal } = new AbortController();

let buckets: MemoryBucket[];
let context: ViewContext;

beforeEach(async () => {
  buckets = ["r0", "r1", "r2"].map((name) => new MemoryBucket(name));
  const parts = writeContextOf({ config: {} as never, stores: buckets as unknown as Store[], signal });
  const search = { prefix: "", olderThanMs: HOUR_MS, removes: true, onUpload: () => {} };
  context = { ...parts, ...search, ageOf: ({ modifiedMs }) => 3 * HOUR_MS - modifiedMs };
  // Its writer dies.
  await claimBatch(
    KEYS.map((key) => ({ key, survey: emptySurvey([]) })),
    parts,
  );
});

async function commit(keys: readonly string[], generation: number, count = 2): Promise<void> {
  for (const key of keys) {
    const bytes = encodeManifest(
      await sealTombstone({ key, generation, modified: new Date(0).toISOString() }, undefined),
    );
    for (const { objects } of buckets.slice(0, count)) objects.set(manifestName(key), Buffer.from(bytes));
  }
}

const left = async (): Promise<number> => {
  const report = structuredClone(NOTHING_FOUND) as Mutable<GarbageReport>;
  await cleanBatches(context, report);
  return buckets.flatMap(({ batches }) => batches).length;
};

test("an old batch goes once a majority has passed each of its generations", async () => {
  await commit(KEYS, 11);
  expect(await left()).toBe(0);
});

test("of walks of shards beside each other, the first one removes it", async () => {
  await commit(KEYS, 11);
  let passedMs = 0;
  const clock = { ...context.clock, now: () => (passedMs += 3 * HOUR_MS) };
  const walk = async (index: number): Promise<number> => {
    const shard = { index, count: 2 };
    await collectGarbage(context, { ...context, config: { keep: [] } as never, clock, nowMs: () => 0, shard });
    return buckets.flatMap(({ batches }) => batches).length;
  };
  expect(await walk(2)).toBeGreaterThan(0);
  expect(await walk(1)).toBe(0);
});

test("a batch stays while a key of it is not committed, or by a minority only", async () => {
  expect(await left()).toBeGreaterThan(0);
  await commit(["a"], 10);
  expect(await left()).toBeGreaterThan(0);
  await commit(["b"], 9);
  expect(await left()).toBeGreaterThan(0);
  await commit(["b"], 10, 1);
  expect(await left()).toBeGreaterThan(0);
});

test("a batch stays while it is young in one region", async () => {
  await commit(KEYS, 10);
  buckets[1]!.modifiedMs = 2 * HOUR_MS;
  expect(await left()).toBeGreaterThan(0);
});
