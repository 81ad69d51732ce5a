/** Listings of several regions, merged by key. */
import { manifestName } from "@agarose/core/format";
import { expect, test } from "vitest";
import type { Store } from "../buckets/store.ts";
import { keyGroups, type KeyGroup } from "./key-groups.ts";

const { signal } = new AbortController();

/** A bucket that lists these names in this order, which no real server can be made to do. */
function bucketOf(name: string, names: readonly string[]): Store {
  async function* list(prefix: string): AsyncGenerator {
    for (const one of names) if (one.startsWith(prefix)) yield { name: one, bytes: 1, modifiedMs: 0 };
  }
  return { region: { name }, list } as unknown as Store;
}

async function read(groups: AsyncIterable<KeyGroup>): Promise<[key: string, regions: string[]][]> {
  const found: [string, string[]][] = [];
  for await (const { key, manifests } of groups) found.push([key, manifests.map(({ store }) => store.region.name)]);
  return found;
}

const SORTED = ["a", "b", "c"].map(manifestName);
const [first, second, third] = SORTED as [string, string, string];

test("each key comes once, with what every region has of it", async () => {
  const stores = [bucketOf("r0", SORTED), bucketOf("r1", [first, third]), bucketOf("r2", [])];
  expect(await read(keyGroups(stores, "", signal))).toEqual([
    ["a", ["r0", "r1"]],
    ["b", ["r0"]],
    ["c", ["r0", "r1"]],
  ]);
});

test("shards have every key once together, in order, whatever the regions lack", async () => {
  const keys = Array.from({ length: 40 }, (_, i) => `k${String(i).padStart(2, "0")}`);
  const names = keys.map(manifestName);
  const stores = [bucketOf("r0", names.slice(5)), bucketOf("r1", names.slice(0, 30)), bucketOf("r2", names)];
  const whole = await read(keyGroups(stores, "", signal));
  const shards = await Promise.all(
    [1, 2, 3].map((index) => read(keyGroups(stores, "", signal, { shard: { index, count: 3 } }))),
  );
  for (const shard of shards) expect(shard).toEqual(whole.filter(([key]) => shard.some(([own]) => own === key)));
  expect(shards.flat().toSorted(([a], [b]) => (a < b ? -1 : 1))).toEqual(whole);
  expect(Math.min(...shards.map(({ length }) => length))).toBeGreaterThan(0);
});

test("a region that does not list in order cannot be listed: its objects would seem to be missing", async () => {
  const stores = [bucketOf("r0", SORTED), bucketOf("r1", [first, third, second])];
  const error = await read(keyGroups(stores, "", signal)).catch((cause: unknown) => cause);
  expect(error).toMatchObject({ code: "SOURCE_FAILED", details: { region: "r1", name: second } });
  const failed: string[] = [];
  const groups = keyGroups(stores, "", signal, { onFailure: ({ region }) => void failed.push(region.name) });
  expect((await read(groups)).map(([key]) => key)).toEqual(["a", "b", "c"]);
  expect(failed).toEqual(["r1"]);
});

test("names of other programs are left out, whatever their order", async () => {
  const names = ["manifests/\u{1f600}!x", "manifests/\uff5e!x", "manifests/none", ...SORTED];
  expect((await read(keyGroups([bucketOf("r0", names)], "", signal))).map(([key]) => key)).toEqual(["a", "b", "c"]);
});

test("a region that lists names of one key without an end cannot be listed, and the others are", async () => {
  let listed = 0;
  async function* endless(prefix: string): AsyncGenerator {
    for (;;) {
      const name = `${manifestName("b")}${String(listed).padStart(9, "0")}`;
      if (!name.startsWith(prefix)) return;
      listed++;
      yield { name, bytes: 1, modifiedMs: 0 };
    }
  }
  const region = { name: "r1", endpoint: "https://r1.example", bucket: "b1" };
  const stores = [bucketOf("r0", SORTED), { region, list: endless } as unknown as Store];
  await expect(read(keyGroups(stores, "", signal))).rejects.toMatchObject({
    code: "SOURCE_FAILED",
    details: { region: "r1", names: 100_001, limit: 100_000 },
  });
  expect(listed).toBe(100_001);
  const failed: string[] = [];
  const groups = keyGroups(stores, "", signal, { onFailure: ({ region: { name } }) => void failed.push(name) });
  expect((await read(groups)).map(([key]) => key)).toEqual(["a", "b", "c"]);
  expect(failed).toEqual(["r1"]);
});
