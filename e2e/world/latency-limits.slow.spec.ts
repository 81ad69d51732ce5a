/** The assertions of latency of `@agarose/dev-world/playwright`: what they read, and what they say when they fail. */
import { stripVTControlCharacters } from "node:util";
import type { Page } from "@playwright/test";
import { openControlledApp, openApp } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";

const KEY = "latency/a b";
const PATH = "/ec/latency/a%20b";

/** The message of the assertion's error. */
async function failureOf(assertion: Promise<void>): Promise<string> {
  const error = await assertion.then(
    () => undefined,
    (reason: Error) => reason,
  );
  if (!error) throw new Error("the assertion passed");
  // Playwright colours the names of matchers.
  return stripVTControlCharacters(error.message);
}

test.describe("of an object that is stored", () => {
  let page: Page;
  test.beforeEach(async ({ context, putRandom, reads: _collects, world }) => {
    await putRandom(KEY, 300_000);
    page = await openControlledApp(context, world);
  });

  test("one copy is read in turn, whole, from the nearest region", async ({ reads, world }) => {
    await world.client.near("iad");
    await expect(reads.of(page, PATH)).toHaveP50Below({ baseline: "one-copy", ratio: 1_000, reads: 4 });
    const copies = (await world.log()).filter(({ path }) => path.endsWith("/latency/a%2520b.copy"));
    expect(copies.map(({ from, to, bytes }) => [from, to, bytes])).toEqual(
      Array.from({ length: 4 }, () => ["client", "n-virginia", 300_000]),
    );
    expect((await reads.all()).map(({ key, bytes }) => [key, bytes])).toEqual(
      Array.from({ length: 4 }, () => [KEY, 300_000]),
    );
  });

  test("a failure says both figures, their counts and what the slowest read did", async ({ reads }) => {
    const limit = { baseline: "one-copy", ratio: 0.000_01, reads: 3 } as const;
    const message = await failureOf(expect(reads.of(page, PATH)).toHaveP99Below(limit));
    expect(message).toMatch(/^expect\(reads of \/ec\/latency\/a%20b\)\.toHaveP99Below\(limit\)/);
    expect(message).toMatch(/Agarose: {2}p99 of 3 reads: [\d.]+ ms\n/);
    expect(message).toMatch(/One copy: p99 of 3 reads: [\d.]+ ms, in frankfurt\n/);
    expect(message).toMatch(/Limit: {4}below 0\.0 ms, 0\.00001 of one copy\n/);
    expect(message).toMatch(/The slowest read took [\d.]+ ms:\nlatency\/a b: 200 \w+, \d+ ms/);
    expect(message.match(/stripe 0 chunk \d+ \S+ +\|[ =]{40}\| \d+ ms, used/g)).toHaveLength(9);
    await expect(reads.of(page, PATH)).not.toHaveP99Below(limit);
  });

  test("a limit in milliseconds reads no copy", async ({ reads, world }) => {
    await expect(reads.of(page, PATH)).toHaveMeanBelow({ ms: 60_000, reads: 2 });
    await expect(reads.of(page, PATH)).not.toHaveMeanBelow({ ms: 0.001, reads: 2 });
    expect((await world.log()).filter(({ path }) => path.endsWith(".copy"))).toEqual([]);
  });

  test("too few reads in the time are a failure of their own, with and without not", async ({ reads }) => {
    const limit = { ms: 60_000, reads: 50_000, timeout: 1_000 };
    for (const matchers of [expect(reads.of(page, PATH)), expect(reads.of(page, PATH)).not]) {
      expect(await failureOf(matchers.toHaveP99Below(limit))).toMatch(
        /^\/ec\/latency\/a%20b: \d+ of 50000 reads in 1000 ms are too few/,
      );
    }
  });

  test("a copy that cannot be read is no baseline", async ({ reads, world }) => {
    await world.region("frankfurt").down();
    expect(
      await failureOf(expect(reads.of(page, PATH)).toHaveP50Below({ baseline: "one-copy", ratio: 1, reads: 2 })),
    ).toMatch(/the copy of \/ec\/latency\/a%20b in frankfurt has no p50 to compare with.* 2 failed.*end the fault/);
    expect(await world.region("frankfurt").fired()).toBeGreaterThan(0);
  });

  test("a path that is no object's is refused", async ({ reads }) => {
    const limit = { baseline: "one-copy", ratio: 1 } as const;
    expect(await failureOf(expect(reads.of(page, "/index.html")).toHaveP50Below(limit))).toMatch(
      /\/index\.html is outside the paths of objects, which begin with \/ec\//,
    );
  });
});

test("an object that does not exist fails with the answer of its reads", async ({ context, reads, world }) => {
  const page = await openControlledApp(context, world);
  const message = await failureOf(
    expect(reads.of(page, "/ec/latency/absent")).toHaveP50Below({ ms: 60_000, reads: 2 }),
  );
  expect(message).toMatch(/p50 of 2 reads: none, .*; 2 failed: 404 .*OBJECT_NOT_FOUND/);
});

test("a page without a service worker has no reads", async ({ context, reads, world }) => {
  const page = await openApp(context, world);
  expect(await failureOf(expect(reads.of(page, PATH)).toHaveP50Below({ ms: 60_000, timeout: 500 }))).toMatch(
    /no service worker controls http:\S+ after 500 ms, so there are 0 reads/,
  );
});
