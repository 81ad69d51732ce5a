/** Ranges of keys over listings of several regions: whole, without overlaps, and about even. */
import { createHash } from "node:crypto";
import { systemClock } from "@agarose/core";
import { keyName, manifestName, parseKey } from "@agarose/core/format";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Store } from "../buckets/store.ts";
import type { RegionParts } from "../commit/write-context.ts";
import { keyGroups } from "./key-groups.ts";
import { cutKeys, isBehind, rangesOf, type KeyRange } from "./key-ranges.ts";

const { signal } = new AbortController();

/** A bucket with these manifests, which may become more while it is listed. */
class Bucket {
  readonly region: Store["region"];
  requests = 0;
  #names: string[] = [];

  constructor(name: string, keys: Iterable<string>) {
    this.region = { name } as Store["region"];
    this.add(keys);
  }

  add(keys: Iterable<string>): void {
    this.#names = [...new Set([...this.#names, ...Array.from(keys, manifestName)])].toSorted((a, b) =>
      a < b ? -1 : 1,
    );
  }

  async *list(prefix: string, _signal?: AbortSignal, after = ""): AsyncGenerator {
    let last = after;
    for (;;) {
      this.requests++;
      const from = placeOf(this.#names, last < prefix ? prefix : `${last}\0`);
      const page = this.#names.slice(from, from + 1_000).filter((name) => name.startsWith(prefix));
      for (const name of page) yield { name, bytes: 1, modifiedMs: 0 };
      if (page.length < 1_000) return;
      last = page.at(-1)!;
    }
  }
}

/** Of the first name that is not before `text`. */
function placeOf(names: readonly string[], text: string): number {
  let [low, high] = [0, names.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (names[middle]! < text) low = middle + 1;
    else high = middle;
  }
  return low;
}

const contextOf = (buckets: readonly Bucket[]): RegionParts =>
  ({ stores: buckets, signal, clock: systemClock }) as unknown as RegionParts;

const cutsOf = (buckets: readonly Bucket[], options: { ranges: number; objectsMin: number; prefix?: string }) =>
  cutKeys(options.prefix ?? "", { ...options, onWarning: () => {} }, contextOf(buckets));

async function keysIn(buckets: readonly Bucket[], range: KeyRange, each = () => {}): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of keyGroups(buckets as unknown as Store[], "", signal, {
    kinds: ["manifests"],
    ...range,
  })) {
    keys.push(key);
    each();
  }
  return keys;
}

const isKey = (text: string): boolean => {
  try {
    return parseKey(text) === text;
  } catch {
    return false;
  }
};
/** Few letters, so that keys have long beginnings in common; and any text. */
const KEY = fc
  .oneof(
    fc.string({ unit: fc.constantFrom("a", "b", "-", "/", "~", "0", "é"), minLength: 1, maxLength: 8 }),
    fc.string({ unit: "binary", minLength: 1, maxLength: 12 }),
  )
  .filter(isKey);
const KEYS = fc.uniqueArray(KEY, { maxLength: 60 });
const inOrder = (keys: Iterable<string>): string[] => [...keys].toSorted((a, b) => (keyName(a) < keyName(b) ? -1 : 1));

describe("ranges", () => {
  test("between any cuts have each key once, those that are added during the walk too", async () => {
    await fc.assert(
      fc.asyncProperty(KEYS, KEYS, KEYS, async (before, during, cuts) => {
        const bucket = new Bucket("r0", before);
        const ranges = rangesOf(inOrder(cuts));
        const added = [...during];
        const found: string[] = [];
        for (const range of ranges) {
          found.push(
            ...(await keysIn([bucket], range, () => {
              const next = added.pop();
              if (next !== undefined) bucket.add([next]);
            })),
          );
        }
        expect(new Set(found).size).toBe(found.length);
        expect(found).toEqual(expect.arrayContaining(before));
        // Whoever walks over them again finds all of them.
        const again = await Promise.all(ranges.map((range) => keysIn([bucket], range)));
        expect(again.flat()).toEqual(await keysIn([bucket], {}));
      }),
    );
  });

  test("that would overlap are refused", () => {
    expect(() => rangesOf(["a", "c", "b"])).toThrow(
      expect.objectContaining({ code: "INTERNAL", details: { before: "c", cut: "b", at: 2 } }),
    );
    expect(() => rangesOf(["a", "a"])).toThrow(expect.objectContaining({ code: "INTERNAL" }));
    // Names are in the order of keys.
    expect(isBehind("a-b", "a")).toBe(true);
    expect(rangesOf(["a", "a-b"])).toHaveLength(3);
  });
});

describe("cuts", () => {
  test("are in order, whatever the regions hold of the keys", async () => {
    await fc.assert(
      fc.asyncProperty(KEYS, KEYS, fc.integer({ min: 1, max: 9 }), async (some, others, objectsMin) => {
        const buckets = [new Bucket("r0", some), new Bucket("r1", others)];
        const cuts = await cutsOf(buckets, { ranges: 8, objectsMin });
        expect(cuts.length).toBeLessThan(8);
        const ranges = rangesOf(cuts);
        const found = await Promise.all(ranges.map((range) => keysIn(buckets, range)));
        expect(found.flat()).toEqual(await keysIn(buckets, {}));
      }),
    );
  });

  const numbered = (prefix: string, count: number): string[] =>
    Array.from({ length: count }, (_, i) => `${prefix}${String(i).padStart(9, "0")}`);
  const random = Array.from({ length: 20_000 }, (_, i) => createHash("md5").update(String(i)).digest("hex"));
  test.each([
    ["numbers", numbered("photos/", 20_000)],
    ["random names", random],
    ["folders, one of them large", [...numbered("a/", 400), ...numbered("b/", 20_000), ...numbered("c/d/", 300)]],
    [
      "folders of 200 each",
      Array.from({ length: 100 }, (_, i) => numbered(`users/${String(i * 7919).padStart(6, "0")}/`, 200)).flat(),
    ],
    ["one long beginning", numbered(`${"archive/".repeat(20)}`, 20_000)],
  ])("are about even: %s", async (_, keys) => {
    const buckets = ["r0", "r1", "r2"].map((name) => new Bucket(name, keys));
    const ranges = rangesOf(await cutsOf(buckets, { ranges: 32, objectsMin: 100 }));
    const { requests } = buckets[0]!;
    const counts = await Promise.all(ranges.map(async (range) => (await keysIn(buckets, range)).length));
    expect(counts.length).toBeGreaterThan(24);
    // Sixteen ranges for each that is walked over at a time leave room for it.
    expect(Math.max(...counts) / (keys.length / counts.length)).toBeLessThan(8);
    expect(requests, "of each region").toBeLessThan(32 * 8);
  });

  test("of few objects are none, and those below a prefix are below it", async () => {
    expect(await cutsOf([new Bucket("r0", numbered("a/", 99))], { ranges: 8, objectsMin: 100 })).toEqual([]);
    const bucket = new Bucket("r0", [...numbered("a/", 5_000), ...numbered("b/", 5_000)]);
    const cuts = await cutsOf([bucket], { ranges: 8, objectsMin: 100, prefix: "b/" });
    expect(cuts.length).toBeGreaterThan(3);
    expect(cuts.filter((cut) => !cut.startsWith("b/"))).toEqual([]);
  });

  test("do without a region that lies or hangs, and without all of them there are none", async () => {
    const liar = new Bucket("liar", []);
    liar.list = async function* (prefix: string) {
      for (const name of ["b", "a"].map(manifestName))
        yield { name: name.startsWith(prefix) ? name : "", bytes: 1, modifiedMs: 0 };
    };
    const warnings: string[] = [];
    const options = { ranges: 8, objectsMin: 100, onWarning: (line: string) => void warnings.push(line) };
    const honest = new Bucket("r0", numbered("a/", 5_000));
    expect((await cutKeys("", options, contextOf([liar, honest]))).length).toBeGreaterThan(3);
    expect(warnings).toEqual([expect.stringContaining("warning: liar is not sampled: region liar lists")]);
    const failed = cutKeys("", options, contextOf([liar]));
    await expect(failed).rejects.toMatchObject({ code: "SOURCE_FAILED", details: { region: "liar" } });
  });
});
