import { afterEach, describe, expect, test } from "vitest";
import {
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

afterEach(() => world.close());

describe("the Cron Trigger", () => {
  test("fills the cache with what was asked for, and the next read comes from the edge", async () => {
    world = await startWorld();
    await putCached(world, "popular", content);
    await readFromCache(world, "popular", content);
  });

  test("keeps what is not asked for any more while there is room, and evicts it for what is", async () => {
    world = await startWorld({ POLICY: "exact", CACHE_BYTES: "201000" });
    const version = await putCached(world, "fading", content);
    await world.pops.cron(POP);
    expect((await world.status()).cache.objects).toMatchObject([{ key: "fading", chunks: [0, 1, 2, 3] }]);
    await world.put("rising", randomBytes(200_000, 7));
    for (let i = 0; i < 5; i++) await readObject(world, "rising");
    await world.pops.cron(POP);
    const { cache } = await world.status();
    expect(cache.objects).toMatchObject([{ key: "rising", chunks: [0, 1, 2, 3] }]);
    const kv = await world.kv();
    expect(await kv.get(`chunks:${version}:0`)).toBeNull();
  });

  test("decides its first configuration by latencies that it has just measured", async () => {
    world = await startWorld({ POLICY: "exact", CACHE_BYTES: "51000", DELTA: "0", FUNCTIONAL: "false" });
    for (const [region, delayMs] of Object.entries({ r2: 200, r3: 1_000, r4: 1_800, r5: 1_800 })) {
      world.buckets.faults.set(region, { delayMs });
    }
    await world.put("page", content);
    await readObject(world, "page");
    const meansMs = async (): Promise<number[]> => {
      const { plan } = await readBundle(`${world.url}/v1/read/page`, "page");
      return plan.regions.map(({ meanMs }) => meanMs);
    };
    expect(await meansMs(), "nothing is known yet").toEqual([250, 250, 250, 250, 250, 250]);
    await world.pops.cron(POP);
    expect(world.buckets.fired.get("r3"), "the delay took effect").toBeGreaterThan(0);
    // There is room for one chunk, and were all regions equally far, none of them would be worth it.
    expect((await world.status()).cache.objects).toMatchObject([{ key: "page", chunks: [3] }]);
    const [r0, , r2, r3] = (await meansMs()) as [number, number, number, number];
    expect(r0).toBeLessThan(r2);
    expect(r2).toBeLessThan(r3);
  });

  test("keeps to the capacity", async () => {
    world = await startWorld({ CACHE_BYTES: "120000" });
    await world.put("a", randomBytes(100_000, 1));
    await world.put("b", randomBytes(100_000, 2));
    for (const key of ["a", "a", "b"]) await readObject(world, key);
    await world.pops.cron(POP);
    const { cache } = await world.status();
    expect(cache.cachedBytes).toBeGreaterThan(0);
    expect(cache.cachedBytes).toBeLessThanOrEqual(120_000);
  });

  test("replaces the chunks of an old version", async () => {
    world = await startWorld();
    const old = await putCached(world, "page", content);
    const { version } = await world.put("page", randomBytes(100_000, 5));
    await readObject(world, "page");
    await world.pops.cron(POP);
    const { cache } = await world.status();
    expect(cache.objects.map((object) => object.version)).toEqual([version]);
    expect(await (await world.kv()).get(`chunks:${old}:0`)).toBeNull();
  });

  test("keeps what is cached while no bucket answers, and still serves reads from it", async () => {
    world = await startWorld();
    await putCached(world, "page", content);
    for (const { name } of (await world.status()).regions) world.buckets.faults.set(name, { down: true });
    world.buckets.fired.clear();
    await readFromCache(world, "page", content);
    await world.pops.cron(POP);
    expect(world.buckets.fired.size).toBe(6);
    const { cache, regions } = await world.status();
    expect(regions.every(({ down }) => down)).toBe(true);
    expect(cache.objects.map(({ key }) => key)).toEqual(["page"]);
    await readFromCache(world, "page", content);
  });

  test("reconstructs the chunks of a region that is down, and stores what it would have delivered", async () => {
    world = await startWorld();
    await world.put("page", content);
    await readObject(world, "page");
    world.buckets.faults.set("r0", { down: true }).set("r1", { spoil: (body) => body.map((byte) => byte ^ 255) });
    world.buckets.fired.clear();
    await world.pops.cron(POP);
    expect(world.buckets.fired.get("r0")).toBeGreaterThan(0);
    const { cache } = await world.status();
    expect(cache.objects).toMatchObject([{ key: "page", done: 4 }]);
    world.buckets.faults.clear();
    world.buckets.requests.length = 0;
    await readFromCache(world, "page", content);
  });

  test("keeps to its budget in money, and says what it has spent and what waits", async () => {
    // Three stripes and the configuration, at $5 for a million writes and $0.50 for a million reads.
    world = await startWorld({ BUDGET_USD_PER_PERIOD: "0.000022", BUDGET_USD_PER_MONTH: "1" });
    await world.put("page", content);
    await readObject(world, "page");
    await world.pops.cron(POP);
    const { lastPeriod, spending } = await world.status();
    expect(lastPeriod).toMatchObject({ written: 3, left: 1, errors: [] });
    expect(spending).toMatchObject({ writes: 4, reads: 3, usdPerPeriodMax: 0.000022, usdPerMonthMax: 1 });
    expect(spending.usd).toBeCloseTo(4 * 5e-6 + 3 * 0.5e-6, 9);
    expect((await readObject(world, "page")).bytes).toEqual(content);
    await world.pops.cron(POP);
    await readFromCache(world, "page", content);
  });

  test("with the policy off caches nothing and evicts", async () => {
    world = await startWorld({ POLICY: "off" });
    await world.put("page", content);
    await readObject(world, "page");
    await world.pops.cron(POP);
    const { cache, epoch } = await world.status();
    expect(cache.objects).toEqual([]);
    expect(epoch).toBe(1);
    expect(await readObject(world, "page")).toEqual({ kind: "origin", bytes: content });
  });

  test("marks a region that is down, and trusts it again only after two good periods", async () => {
    world = await startWorld();
    const isDown = async (): Promise<boolean> => (await world.status()).regions.find(({ name }) => name === "r2")!.down;
    world.buckets.faults.set("r2", { down: true });
    await world.pops.cron(POP);
    expect(await isDown()).toBe(true);
    world.buckets.faults.clear();
    await world.pops.cron(POP);
    expect(await isDown()).toBe(true);
    await world.pops.cron(POP);
    expect(await isDown()).toBe(false);
  });

  test("caches content that two keys share for each of them, because a version belongs to one key", async () => {
    world = await startWorld();
    const one = await world.put("one", content);
    const two = await world.put("two", content);
    expect(two.version).not.toBe(one.version);
    await readObject(world, "one");
    await readObject(world, "two");
    await world.pops.cron(POP);
    const { cache } = await world.status();
    const versions = new Set(cache.objects.map((object) => object.version));
    expect(versions).toEqual(new Set([one.version, two.version]));
    await readFromCache(world, "one", content);
    await readFromCache(world, "two", content);
  });

  test("does nothing while another period is running", async () => {
    world = await startWorld();
    await world.put("page", content);
    await readObject(world, "page");
    await Promise.all([world.pops.cron(POP), world.pops.cron(POP)]);
    expect((await world.status()).epoch).toBe(1);
    await world.pops.cron(POP);
    expect((await world.status()).epoch).toBe(2);
  });
});
