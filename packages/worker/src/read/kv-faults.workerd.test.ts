import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  ADMIN_TOKEN,
  POP,
  putCached,
  randomBytes,
  readBundle,
  readFromCache,
  readObject,
  startWorld,
  type TestWorld,
} from "../../test/world.ts";

let world: TestWorld;
const content = randomBytes(200_000);

beforeEach(async () => {
  world = await startWorld();
});
afterEach(() => world.close());

describe("KV", () => {
  test("that is down costs no read", async () => {
    await putCached(world, "page", content);
    await world.pops.setFault(POP, { kv: "down" });
    const { frames } = await readBundle(`${world.url}/v1/read/page`, "page");
    expect(frames.filter(({ type }) => type === "miss")).toHaveLength(16);
    expect(await readObject(world, "page")).toEqual({ kind: "origin", bytes: content });
    expect((await world.pops.fault(POP)).fired).toBeGreaterThan(0);
  });

  test("that is down does not matter to what was read a moment ago, however often it is read", async () => {
    await putCached(world, "page", content);
    await readObject(world, "page");
    await world.pops.setFault(POP, { kv: "down" });
    for (let i = 0; i < 3; i++) {
      await readFromCache(world, "page", content);
      const { frames } = await readBundle(`${world.url}/v1/read/page`, "page");
      expect(frames.filter(({ type }) => type === "chunk")).toHaveLength(16);
    }
  });

  test("that is down during a period leaves the cache as it was, and the next period catches up", async () => {
    await world.put("page", content);
    await readObject(world, "page");
    await world.pops.setFault(POP, { kv: "down" });
    await world.pops.cron(POP);
    expect((await world.pops.fault(POP)).fired).toBeGreaterThan(0);
    expect((await world.status()).lastPeriod.errors.length).toBeGreaterThan(0);
    expect((await world.status()).cache.cachedBytes).toBe(0);
    await world.pops.setFault(POP, { kv: "ok" });
    await readObject(world, "page");
    await world.pops.cron(POP);
    await readFromCache(world, "page", content);
  });

  test("that hangs breaks no read", async () => {
    await putCached(world, "page", content);
    await world.pops.setFault(POP, { kv: "slow" });
    const { frames } = await readBundle(`${world.url}/v1/read/page`, "page");
    expect(frames.filter(({ type }) => type === "miss").length).toBeGreaterThan(0);
    expect((await readObject(world, "page")).bytes).toEqual(content);
    expect((await world.pops.fault(POP)).fired).toBeGreaterThan(0);
    expect((await world.status()).isolate.chunkCache.kvFailures).toBeGreaterThan(0);
  });

  test("that is stale shows nothing new, and no read is wrong", async () => {
    await putCached(world, "page", content);
    await world.pops.setFault(POP, { kv: "stale" });
    const renewed = randomBytes(150_000, 9);
    const { version } = await world.put("page", renewed);
    await readObject(world, "page");
    await world.pops.cron(POP);
    const { plan, frames } = await readBundle(`${world.url}/v1/read/page`, "page");
    expect(plan.version).toBe(version);
    expect(plan.cached).toHaveLength(4);
    expect(new Set(frames.map(({ type }) => type))).toEqual(new Set(["miss", "end"]));
    expect((await readObject(world, "page")).bytes).toEqual(renewed);
    expect((await world.pops.fault(POP)).fired).toBeGreaterThan(0);
  });

  test("that is down during a purge: it promises nothing and reports what is left, which the next period promises again", async () => {
    const keys = ["photos/a", "photos/b", "videos/a"];
    for (const [i, key] of keys.entries()) await putCached(world, key, randomBytes(200_000, i + 1));
    await world.pops.setFault(POP, { kv: "down" });
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const body = JSON.stringify({ prefix: "photos/" });
    const response = await fetch(`${world.url}/v1/purge`, { method: "POST", body, headers });
    const report = (await response.json()) as { errors: string[] };
    expect((await world.pops.fault(POP)).fired).toBeGreaterThan(0);
    expect(report).toMatchObject({ objects: 2, left: 8 });
    expect(report.errors.length).toBeGreaterThan(0);
    await world.pops.setFault(POP, { kv: "ok" });
    const promised = async (): Promise<[string, number][]> =>
      (await world.status()).cache.objects.map(({ key, chunks }) => [key, chunks.length]);
    expect((await promised()).toSorted()).toEqual([
      ["photos/a", 0],
      ["photos/b", 0],
      ["videos/a", 4],
    ]);
    expect((await readObject(world, "photos/a")).kind).toBe("origin");
    // They are as popular as before, so the next period does not leave them half removed: it checks and promises them
    // again.
    await world.pops.cron(POP);
    expect((await promised()).filter(([, chunks]) => chunks === 0)).toEqual([]);
    expect((await world.status()).lastPeriod.errors).toEqual([]);
  });
});
