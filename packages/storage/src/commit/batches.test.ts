import { beforeEach, expect, test } from "vitest";
import { manifestName } from "@agarose/core/format";
import { MemoryBucket } from "../../test/memory-bucket.ts";
import type { Store } from "../buckets/store.ts";
import { batchesIn, claimBatch } from "./batches.ts";
import { batchAfter, isFirst, singleAfter } from "./generations.ts";
import { emptySurvey } from "../regions/region-survey.ts";
import { BATCH_PREFIX } from "./names.ts";
import { writeContextOf, type WriteContext } from "./write-context.ts";

const KEYS = ["a", "b/ü", "c"];

/** A key that no region listed. */
const wish = (key: string) => ({ key, survey: emptySurvey([]) });
const WISHES = KEYS.map(wish);
const { signal } = new AbortController();

let buckets: MemoryBucket[];
let context: WriteContext;

beforeEach(() => {
  buckets = ["r0", "r1", "r2", "r3", "r4"].map((name) => new MemoryBucket(name));
  context = writeContextOf({ config: {} as never, stores: buckets as unknown as Store[], signal });
});

const names = (): string[] => [...new Set(buckets.flatMap(({ batches }) => batches))];

test("claims a generation of each key that no claim of its own takes, once, and is removed at its end", async () => {
  const batch = await claimBatch(WISHES, context);
  for (const key of KEYS) {
    const { generation, isFresh } = batch!.take(key)!;
    expect([generation, isFresh]).toEqual([10, true]);
    expect(batch!.take(key)).toBeUndefined();
  }
  expect(Array.from({ length: 40 }, (_, newest) => singleAfter(newest)).filter((one) => one % 10 === 0)).toEqual([]);
  expect(names()).toHaveLength(1);
  await batch!.end();
  expect(names()).toEqual([]);
});

test("goes above what a key has, by a generation that no first version has", async () => {
  expect([0, 1, 9, 10, 19, 20].map(batchAfter)).toEqual([10, 20, 20, 20, 20, 30]);
  expect([batchAfter(0), batchAfter(1)].map(isFirst)).toEqual([true, false]);
  for (const { objects } of buckets) objects.set(manifestName("a"), Buffer.from("{}"));
  const survey = { ...emptySurvey([]), generation: 13 };
  const listed = { key: "a", etag: "", survey };
  expect((await claimBatch([listed], context))!.take("a")).toMatchObject({ generation: 20 });
  const batch = await claimBatch([{ ...listed, etag: "another" }, wish("b/ü")], context);
  expect(["a", "b/ü"].map((key) => batch!.take(key)?.generation)).toEqual([undefined, 10]);
});

test("of two batches that claim the same keys at once, one gets each key at most", async () => {
  for (let round = 0; round < 20; round++) {
    const claimed = await Promise.all([claimBatch(WISHES, context), claimBatch([...WISHES, wish("d")], context)]);
    for (const key of KEYS) {
      const taken = claimed.flatMap((batch) => batch?.take(key)?.generation ?? []);
      expect(new Set(taken).size).toBe(taken.length);
    }
    await Promise.all(claimed.map((batch) => batch?.end()));
  }
});

test("passes over the batch of a writer that died", async () => {
  await claimBatch(WISHES, context);
  const batch = await claimBatch(WISHES, context);
  expect(KEYS.map((key) => batch!.take(key)?.generation)).toEqual([20, 20, 20]);
});

test("stays where a write by it may still arrive", async () => {
  const batch = await claimBatch(WISHES, context);
  const lease = batch!.take("a")!;
  lease.isOpen = true;
  await batch!.end();
  expect(names()).toHaveLength(1);
  lease.isOpen = false;
  await batch!.end();
  expect(names()).toEqual([]);
});

test("leaves a key to a claim of its own that a majority lists by now", async () => {
  const put = (region: MemoryBucket): unknown => region.objects.set(manifestName("b/ü"), Buffer.from("{}"));
  // A minority that is not asked may have what was never acknowledged.
  for (const region of buckets.slice(3)) region.objects.set(manifestName("c"), Buffer.from("{}"));
  buckets[0]!.onPut = () => buckets.slice(0, 3).forEach(put);
  const batch = await claimBatch(WISHES, context);
  expect(KEYS.map((key) => batch!.take(key)?.generation)).toEqual([10, undefined, 10]);
});

test.each([
  ["too few regions answer", 3, (region: MemoryBucket) => (region.fails = true)],
  [
    "listings lag behind what is stored",
    5,
    (region: MemoryBucket) => (region.hides = (name) => name.startsWith(BATCH_PREFIX)),
  ],
  [
    "too many batches are listed",
    5,
    (region: MemoryBucket) => {
      for (let n = 0; n < 1_001; n++) region.objects.set(`${BATCH_PREFIX}${n}`, Buffer.from("{}"));
    },
  ],
])("claims nothing where %s", async (_, count, spoil) => {
  buckets.slice(0, count).forEach(spoil);
  const before = names();
  expect(await claimBatch(WISHES, context)).toBeUndefined();
  expect(names()).toEqual(before);
});

test("claims by the other regions where one lies in its list, and reads what is no batch as nothing", async () => {
  const [liar] = buckets;
  liar!.hides = () => true;
  for (const { objects } of buckets) objects.set(`${BATCH_PREFIX}other`, Buffer.from('{"claims":[1]}'));
  expect(await batchesIn(buckets[1] as unknown as Store, signal)).toMatchObject([{ entries: new Map() }]);
  liar!.fails = true;
  expect((await claimBatch(WISHES, context))!.take("a")).toMatchObject({ generation: 10 });
});
