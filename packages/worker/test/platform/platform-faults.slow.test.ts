/** The platform in trouble: each fault is shown to have fired, and every read still gives the right bytes. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { PlatformFaults } from "./platform-faults.ts";
import {
  POP,
  putCached,
  randomBytes,
  readBundle,
  readFromCache,
  readObject,
  startWorld,
  type TestWorld,
} from "../world.ts";

let world: TestWorld;
const content = randomBytes(200_000);
const renewed = randomBytes(150_000, 9);
const MINUTE_MS = 60_000;

beforeEach(async () => {
  world = await startWorld({}, { limited: true });
});
afterEach(() => world.close());

/** Sets the faults of the platform, and returns how often those before have fired. */
async function setFaults(faults: Partial<PlatformFaults>): Promise<number> {
  const response = await fetch(`${world.url}/__limits`, { method: "POST", body: JSON.stringify(faults) });
  return ((await response.json()) as { fired: number }).fired;
}

/** A period, late enough that KV takes another configuration. */
async function period(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  await world.pops.cron(POP);
}

const epoch = async (): Promise<number> => (await world.status()).epoch;

describe("KV that is a minute behind", () => {
  test("shows a new version's chunks later; until then they come from the buckets", async () => {
    await putCached(world, "page", content);
    await setFaults({ kvBehindMs: MINUTE_MS });
    const { version } = await world.put("page", renewed);
    expect((await readObject(world, "page")).bytes).toEqual(renewed);
    await period();
    const { plan, frames } = await readBundle(`${world.url}/v1/read/page`, "page");
    expect(plan).toMatchObject({ version, cached: [0, 1, 2, 3] });
    expect(new Set(frames.map(({ type }) => type))).toEqual(new Set(["miss", "end"]));
    expect(await readObject(world, "page")).toEqual({ kind: "origin", bytes: renewed });
    expect(await setFaults({ kvBehindMs: MINUTE_MS, clockAheadMs: MINUTE_MS + 1 })).toBeGreaterThan(0);
    await readFromCache(world, "page", renewed);
  });

  test("stops no period, although the period finds none of its own writes", async () => {
    await setFaults({ kvBehindMs: MINUTE_MS });
    await putCached(world, "page", content);
    await readBundle(`${world.url}/v1/read/page`, "page");
    await period();
    const { lastPeriod, cache } = await world.status();
    expect(lastPeriod.errors).toEqual([]);
    expect(cache.objects).toMatchObject([{ key: "page", chunks: [0, 1, 2, 3], done: 4 }]);
    expect(await setFaults({})).toBeGreaterThan(0);
    await readFromCache(world, "page", content);
  });
});

describe("Durable Objects that are overloaded", () => {
  test("fail no read; a period gives up, and the next one takes the requests into account that were made meanwhile", async () => {
    await putCached(world, "page", content);
    await world.put("other", renewed);
    const before = await epoch();
    await setFaults({ objectsOverloaded: true });
    await readFromCache(world, "page", content);
    expect(await readObject(world, "other")).toEqual({ kind: "origin", bytes: renewed });
    await expect(period()).rejects.toThrow("the Cron Trigger of PoP");
    expect(await setFaults({})).toBeGreaterThan(1);
    expect(await epoch()).toBe(before);
    await period();
    expect((await world.status()).lastPeriod.errors).toEqual([]);
    await readFromCache(world, "other", renewed);
  });
});

describe("a Cron Trigger that is killed half-way", () => {
  test("promises nothing that is not there; a later one continues once its lease has run out, and writes nothing twice", async () => {
    await world.put("page", content, { stripeBytes: 2_000 });
    await readObject(world, "page");
    await setFaults({ killedAfterWrites: 60 });
    void world.pops.cron(POP).catch(() => {});
    while (
      (await (await world.pops.miniflare.getKVNamespace("CHUNKS", POP)).list({ prefix: "chunks:" })).keys.length < 60
    ) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect((await readObject(world, "page")).bytes).toEqual(content);
    const { cache } = await world.status();
    expect(cache.objects).toMatchObject([{ key: "page", chunks: [], stripes: 100 }]);
    expect(cache.objects[0]!.done, "noted every fifty stripes, six of which are under way").toBeGreaterThan(40);
    const atMs = { clockAheadMs: 3 * MINUTE_MS };
    expect(await setFaults(atMs)).toBeGreaterThan(0);
    await period();
    const { lastPeriod, spending } = await world.status();
    expect(lastPeriod).toMatchObject({ errors: [], left: 0 });
    expect(lastPeriod.written).toBe(40);
    expect(spending.writes, "no fewer than KV has seen").toBeGreaterThanOrEqual(100);
    await readFromCache(world, "page", content);
  });
});

describe("a Cron Trigger that does not come for an hour", () => {
  test("leaves the cache as useful as it was, and then one period catches up", async () => {
    await putCached(world, "page", content);
    await world.put("other", renewed);
    const before = await epoch();
    await setFaults({ clockAheadMs: 60 * MINUTE_MS });
    await readFromCache(world, "page", content);
    expect(await readObject(world, "other")).toEqual({ kind: "origin", bytes: renewed });
    await period();
    expect(await setFaults({ clockAheadMs: 60 * MINUTE_MS })).toBeGreaterThan(0);
    const { lastPeriod } = await world.status();
    expect(lastPeriod).toMatchObject({ errors: [], left: 0 });
    expect(await epoch()).toBe(before + 1);
    await readFromCache(world, "other", renewed);
  });
});

describe("a clock that is five minutes", () => {
  const cases: [string, number][] = [
    ["ahead", 5 * MINUTE_MS],
    ["behind", -5 * MINUTE_MS],
  ];

  test.each(cases)("%s costs no read, and periods resume when it is right again", async (_name, clockAheadMs) => {
    await setFaults({ clockAheadMs });
    await putCached(world, "page", content);
    await readFromCache(world, "page", content);
    expect(await setFaults({})).toBeGreaterThan(0);
    await world.put("page", renewed);
    expect((await readObject(world, "page")).bytes).toEqual(renewed);
    await period();
    expect((await world.status()).lastPeriod.errors).toEqual([]);
    await readFromCache(world, "page", renewed);
  });

  test("ahead does not make a key name its old version for longer than any clock allows", async () => {
    await world.close();
    world = await startWorld({ MANIFEST_TTL_SECONDS: "60" }, { limited: true });
    await world.put("page", content);
    await setFaults({ clockAheadMs: 5 * MINUTE_MS });
    expect((await readObject(world, "page")).bytes).toEqual(content);
    await world.put("page", renewed);
    // By the clock that is right, what was read a moment ago would be good for six minutes.
    expect(await setFaults({})).toBeGreaterThan(0);
    expect((await readObject(world, "page")).bytes).toEqual(renewed);
  });

  test("ahead while a period is killed does not delay the next ones", async () => {
    await putCached(world, "page", content);
    const before = await epoch();
    const namespace = await world.pops.miniflare.getDurableObjectNamespace("POP_STATE", POP);
    const state = namespace.get(namespace.idFromName("pop")) as unknown as {
      beginPeriod(nowMs: number, leaseMs: number): Promise<object | undefined>;
    };
    expect(await state.beginPeriod(Date.now() + 5 * MINUTE_MS, 2 * MINUTE_MS)).toBeDefined();
    await period();
    expect(await epoch()).toBe(before + 1);
  });
});
