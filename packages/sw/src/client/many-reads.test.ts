/** Reads at the same time, and reads that are prepared: what a page with many objects sees. */
import { describe, expect, test, vi } from "vitest";
import { STRIPE_TIMEOUT_MS_DEFAULT } from "@agarose/core/read";
import { REQUESTS_PER_SOURCE } from "./sources/fair-queue.ts";
import { HEDGED_SHARE } from "./hedge-budget.ts";
import type { ObjectClient } from "./object-client.ts";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";

const IMAGES = Array.from({ length: 100 }, (_, i) => `images/${i}`);
/** One stripe of four data chunks. */
const IMAGE = sampleBytes(4096);
const K = 4;
const SHARD_BYTES = 1024;

/** 100 images of one stripe and a long object, on six connections to each region. */
async function startWorld(): Promise<{ world: FakeWorld; client: ObjectClient }> {
  const world = new FakeWorld();
  for (const key of IMAGES) world.put(key, IMAGE);
  world.put("long", sampleBytes(400_000));
  for (const region of world.regions) [region.connections, region.delayMs] = [6, 50];
  const client = world.client();
  await world.clock.settle(client.probe(true));
  await world.clock.settle(client.preload([...IMAGES, "long"]));
  return { world, client };
}

/**
 * Reads the whole object and returns the time of its last byte. As a range, which asks the buckets itself: whole small
 * objects come from the PoP together.
 */
async function timed(world: FakeWorld, client: ObjectClient, key: string, priority?: string): Promise<number> {
  const headers = new Headers({ range: "bytes=0-", ...(priority && { priority }) });
  const { body } = await client.answer({ key, method: "GET", headers });
  await new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer();
  return world.clock.now();
}

describe("images that a page asks for at once", () => {
  test("are not held up by the long reads that began before them", async () => {
    const keys = IMAGES.slice(0, 20);
    const alone = await startWorld();
    const from = alone.world.clock.now();
    const images = keys.map((key) => timed(alone.world, alone.client, key));
    const aloneMs = Math.max(...(await alone.world.clock.settle(Promise.all(images)))) - from;

    const { world, client } = await startWorld();
    const start = world.clock.now();
    // Their windows are 16 stripes each: more than a hundred requests for every region.
    const long = Array.from({ length: 10 }, () => timed(world, client, "long"));
    const ends = await world.clock.settle(Promise.all(keys.map((key) => timed(world, client, key))));
    expect(Math.max(...ends) - start).toBeLessThan(3 * aloneMs);
    expect(Math.min(...(await world.clock.settle(Promise.all(long))))).toBeGreaterThan(Math.max(...ends));
  });

  test("all come on a line where the last ones wait for minutes", async () => {
    const { world, client } = await startWorld();
    for (const region of world.regions) [region.connections, region.delayMs] = [2, 8_000];
    const start = world.clock.now();
    const ends = await world.clock.settle(Promise.all(IMAGES.map((key) => timed(world, client, key))));
    expect(Math.max(...ends) - start).toBeGreaterThan(4 * STRIPE_TIMEOUT_MS_DEFAULT);
  });

  test("leave an urgent one the first place, though it was asked for last", async () => {
    const { world, client } = await startWorld();
    const others = IMAGES.slice(1).map((key) => timed(world, client, key));
    const urgent = timed(world, client, IMAGES[0]!, "u=0");
    const ends = await world.clock.settle(Promise.all([urgent, ...others]));
    expect(ends.filter((end) => end < ends[0]!).length).toBeLessThan(50);
  });

  describe("each of which needs one of two slow regions", () => {
    const CONNECTIONS = 6;
    const SLOW_MS = [300, 400];

    const readAll = async () => {
      const world = new FakeWorld();
      for (const key of IMAGES) world.put(key, IMAGE);
      // Three chunks are near, and the last region is no choice.
      const delays = [20, 20, 20, ...SLOW_MS, 3_000];
      for (const [i, region] of world.regions.entries())
        [region.connections, region.delayMs] = [CONNECTIONS, delays[i]!];
      world.savesData = true;
      const client = world.client();
      await world.clock.settle(client.probe(true));
      await world.clock.settle(client.preload(IMAGES));
      const start = world.clock.now();
      const ends = await world.clock.settle(Promise.all(IMAGES.map((key) => timed(world, client, key))));
      return { client, tookMs: ends.map((end) => end - start) };
    };

    test("go to the one or the other by what has to be waited for there", async () => {
      const { tookMs } = await readAll();
      const meanMs = tookMs.reduce((sum, ms) => sum + ms, 0) / IMAGES.length;
      // Both busy all the time: the last read ends when they have served all, the mean one after half of that.
      const [one, other] = SLOW_MS.map((ms) => CONNECTIONS / ms);
      const sharedMs = IMAGES.length / (one! + other!);
      expect(meanMs).toBeLessThan(1.25 * (sharedMs / 2));
      expect(Math.max(...tookMs)).toBeLessThan(1.25 * sharedMs);
    });

    test("do not take what they wait for their turn for the region's latency", async () => {
      const { client, tookMs } = await readAll();
      // The browser's connections are part of it: 24 requests on six of them.
      const busyMs = (REQUESTS_PER_SOURCE / CONNECTIONS) * SLOW_MS[0]!;
      expect(Math.max(...tookMs), "some waited longer").toBeGreaterThan(2 * busyMs);
      expect(client.latencies.estimate("region:r3", SHARD_BYTES).meanMs).toBeLessThan(1.1 * busyMs);
    });
  });
});

test("what waits behind a region that hangs is replaced by another region, and never asked for", async () => {
  const { world, client } = await startWorld();
  // No request beyond k, so that each read needs its nearest four regions.
  world.savesData = true;
  world.regions[0]!.delayMs = 10_000_000;
  world.log.length = 0;
  const start = world.clock.now();
  const ends = await world.clock.settle(Promise.all(IMAGES.map((key) => timed(world, client, key))));
  expect(Math.max(...ends) - start).toBeLessThan(10_000);
  const hung = world.requests("r0");
  expect(hung.length, "the region was asked, and more waited for it").toBeGreaterThanOrEqual(REQUESTS_PER_SOURCE);
  expect(hung.length).toBeLessThan(IMAGES.length);
  expect(hung.every(({ aborted }) => aborted)).toBe(true);
});

test.each([false, true])(
  "what is asked for because chunks are late keeps to the budget (spent: %s)",
  async (isSpent) => {
    const { world, client } = await startWorld();
    // One request in ten takes ten times as long, in turn over the regions.
    let count = 0;
    for (const region of world.regions) {
      const usual = region.delayMs;
      Object.defineProperty(region, "delayMs", { get: () => (++count % 10 === 0 ? 10 * usual : usual) });
    }
    if (isSpent) while (client.hedging.hedge(SHARD_BYTES, 1));
    const hedge = vi.spyOn(client.hedging, "hedge");
    world.events.length = 0;
    await world.clock.settle(Promise.all(IMAGES.map((key) => timed(world, client, key))));
    const started = world.events.filter((event) => event.type === "request" && event.outcome === "pending");
    const asked = hedge.mock.calls.map(([, times], i) => ({ times, isAllowed: hedge.mock.results[i]!.value === true }));
    const allowed = asked.filter(({ isAllowed }) => isAllowed);
    expect(started.length).toBeLessThanOrEqual((K + 1) * IMAGES.length + allowed.length);
    expect(count, "stragglers there were").toBeGreaterThan(100);
    expect(asked.length).toBeGreaterThan(0);
    // With nothing saved up, only what is late twice is helped, but for what these reads have earned.
    const first = allowed.filter(({ times }) => times === 1).length;
    if (isSpent) expect(first).toBeLessThanOrEqual(HEDGED_SHARE * K * IMAGES.length);
    else expect(first).toBe(asked.length);
  },
);

describe("priority", () => {
  test("reaches every request of the read, to PoP and buckets", async () => {
    const { world, client } = await startWorld();
    world.log.length = 0;
    await world.clock.settle(timed(world, client, IMAGES[0]!, "u=6"));
    const requests = world.requests();
    expect(requests.some(({ to }) => to === "p0") && requests.some(({ to }) => to.startsWith("r"))).toBe(true);
    expect(new Set(requests.map(({ priority }) => priority))).toEqual(new Set(["low"]));
  });
});

describe("plans ahead of time", () => {
  test("let the first read of a key ask edge and buckets in the same tick", async () => {
    const { world, client } = await startWorld();
    world.log.length = 0;
    const start = world.clock.now();
    await world.clock.settle(timed(world, client, IMAGES[0]!));
    const first = world.requests().filter(({ atMs }) => atMs === start);
    expect(first.some(({ url }) => url.includes("version="))).toBe(true);
    expect(first.filter(({ to }) => to.startsWith("r")).length).toBeGreaterThanOrEqual(4);
  });

  const preloaded = async (change: (world: FakeWorld) => void) => {
    const world = new FakeWorld();
    for (const key of IMAGES) world.put(key, IMAGE);
    change(world);
    const client = world.client();
    const start = world.clock.now();
    const preload = client.preload(["nowhere", ...IMAGES, ...IMAGES.slice(0, 1)]);
    await expect(world.clock.settle(preload)).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
    const asked = (path: string) => world.requests().filter(({ url }) => url.includes(path));
    return { world, client, start, asked };
  };

  test("come a hundred in one answer, and a key that does not exist harms no other", async () => {
    const { world, client, asked } = await preloaded(() => {});
    expect(IMAGES.every((key) => client.plans.get(key))).toBe(true);
    // 101 keys.
    expect(asked("/v1/plans?").map(({ to }) => to)).toEqual(["p0", "p0"]);
    expect(asked("/v1/read/images/")).toEqual([]);
    world.log.length = 0;
    await world.clock.settle(client.preload(IMAGES));
    expect(world.requests()).toEqual([]);
  });

  test("are asked for once each, a few at a time, where the PoP does not answer for many", async () => {
    const { client, start, asked } = await preloaded(({ pops }) => (pops[0]!.fault = "error"));
    expect(IMAGES.every((key) => client.plans.get(key))).toBe(true);
    expect(asked("/v1/plans?")).toHaveLength(1);
    const reads = asked("/v1/read/images/").filter(({ to }) => to !== "p0");
    expect(new Set(reads.map(({ url }) => url)).size).toBe(100);
    expect(asked("/v1/read/").filter(({ atMs }) => atMs === start).length).toBeLessThanOrEqual(8);
  });

  test("are forgotten by a purge of their key or prefix, and of no other", async () => {
    const { client } = await startWorld();
    await client.purge((key) => key.startsWith("images/1"));
    const left = IMAGES.filter((key) => client.plans.get(key));
    expect(left).toEqual(IMAGES.filter((key) => !key.startsWith("images/1")));
  });
});
