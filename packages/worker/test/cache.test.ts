import { beforeEach, afterEach, describe, expect, test } from "vitest";
import { POP, randomBytes, readBundle, startWorld, type TestWorld } from "./world.ts";

let world: TestWorld;
const content = randomBytes(200_000);

beforeEach(async () => {
  world = await startWorld();
});
afterEach(() => world.close());

const readObject = async (key: string): Promise<{ kind: string | null; bytes: Uint8Array }> => {
  const response = await fetch(`${world.url}/o/${key}`);
  return { kind: response.headers.get("x-agarose-read"), bytes: new Uint8Array(await response.arrayBuffer()) };
};

/** An object that is cached in whole: `k` chunks of each of its four stripes. */
const cachedObject = async (key: string): Promise<string> => {
  const { version } = await world.put(key, content);
  await readObject(key);
  await world.pops.cron(POP);
  const { cache, lastPeriod } = await world.status();
  expect(lastPeriod.errors).toEqual([]);
  expect(cache.objects).toMatchObject([{ key, version, stripes: 4, done: 4 }]);
  expect(cache.objects[0]!.chunks).toHaveLength(4);
  return version;
};

describe("the Cron Trigger", () => {
  test("fills the cache with what was asked for, and the next read comes from the edge", async () => {
    await cachedObject("popular");
    world.buckets.requests.length = 0;
    expect(await readObject("popular")).toEqual({ kind: "edge", bytes: content });
    expect(world.buckets.requests.filter(({ name }) => name.startsWith("chunks/"))).toEqual([]);
  });

  test("evicts what is not asked for any more", async () => {
    const version = await cachedObject("fading");
    for (let i = 0; i < 8; i++) await world.pops.cron(POP);
    const { cache } = await world.status();
    expect(cache.objects).toEqual([]);
    const kv = await world.kv();
    expect(await kv.get(`chunks:${version}:0`)).toBeNull();
  });

  test("keeps to the capacity", async () => {
    await world.close();
    world = await startWorld({ CACHE_BYTES: "120000" });
    await world.put("a", randomBytes(100_000, 1));
    await world.put("b", randomBytes(100_000, 2));
    for (const key of ["a", "a", "b"]) await readObject(key);
    await world.pops.cron(POP);
    const { cache } = await world.status();
    expect(cache.cachedBytes).toBeGreaterThan(0);
    expect(cache.cachedBytes).toBeLessThanOrEqual(120_000);
  });

  test("replaces the chunks of an old version", async () => {
    const old = await cachedObject("page");
    const { version } = await world.put("page", randomBytes(100_000, 5));
    await readObject("page");
    await world.pops.cron(POP);
    const { cache } = await world.status();
    expect(cache.objects.map((object) => object.version)).toEqual([version]);
    expect(await (await world.kv()).get(`chunks:${old}:0`)).toBeNull();
  });

  test("keeps what is cached while the buckets do not answer", async () => {
    await cachedObject("page");
    for (const { name } of (await world.status()).regions) world.buckets.faults.set(name, { down: true });
    await readObject("page");
    await world.pops.cron(POP);
    const { cache, regions } = await world.status();
    expect(regions.every(({ down }) => down)).toBe(true);
    expect(cache.objects.map(({ key }) => key)).toEqual(["page"]);
  });

  test("reconstructs the chunks of a region that is down, and stores what it would have delivered", async () => {
    await world.put("page", content);
    await readObject("page");
    world.buckets.faults.set("r0", { down: true }).set("r1", { spoil: (body) => body.map((byte) => byte ^ 255) });
    world.buckets.fired.clear();
    await world.pops.cron(POP);
    expect(world.buckets.fired.get("r0")).toBeGreaterThan(0);
    const { cache } = await world.status();
    expect(cache.objects).toMatchObject([{ key: "page", done: 4 }]);
    world.buckets.faults.clear();
    world.buckets.requests.length = 0;
    expect(await readObject("page")).toEqual({ kind: "edge", bytes: content });
  });

  test("with the policy off caches nothing and evicts", async () => {
    await world.close();
    world = await startWorld({ POLICY: "off" });
    await world.put("page", content);
    await readObject("page");
    await world.pops.cron(POP);
    const { cache, epoch } = await world.status();
    expect(cache.objects).toEqual([]);
    expect(epoch).toBe(1);
    expect(await readObject("page")).toEqual({ kind: "origin", bytes: content });
  });

  test("marks a region that is down, and trusts it again only after two good periods", async () => {
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
});

describe("the bundle", () => {
  test("of an object that is not cached is a plan and an end", async () => {
    const manifest = await world.put("page", content);
    const { plan, frames } = await readBundle(`${world.url}/v1/read/page`, "page");
    expect(plan).toMatchObject({ pop: "fra", version: manifest.version, cached: [], delta: 1, manifest });
    expect(plan.regions.map(({ url }) => url)).toContain("http://public.invalid/r0");
    expect(frames.map(({ type }) => type)).toEqual(["end"]);
  });

  test("of a cached object has the promised chunks of the stripes asked for, in order", async () => {
    const version = await cachedObject("page");
    const { plan, frames } = await readBundle(`${world.url}/v1/read/page?version=${version}&from=1&to=2`, "page");
    expect(plan.manifest).toBeUndefined();
    expect(plan.cached).toHaveLength(4);
    const chunks = frames.slice(0, -1);
    expect(chunks.map(({ type, stripe, chunk }) => [type, stripe, chunk])).toEqual(
      [1, 2].flatMap((stripe) => plan.cached.map((chunk) => ["chunk", stripe, chunk])),
    );
    expect(chunks.every(({ payload }) => payload.length === 16_384)).toBe(true);
  });

  test("sends the new manifest to a client that knows an old version", async () => {
    const manifest = await world.put("page", content);
    const { plan } = await readBundle(`${world.url}/v1/read/page?version=${"0".repeat(32)}`, "page");
    expect(plan.manifest).toEqual(manifest);
  });

  test.each([
    ["from=x", "REQUEST_INVALID"],
    ["from=-1", "REQUEST_INVALID"],
    ["from=3&to=2", "REQUEST_INVALID"],
  ])("with %s is refused", async (query, code) => {
    await world.put("page", content);
    const response = await fetch(`${world.url}/v1/read/page?${query}`);
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: { code: string } }).error.code).toBe(code);
  });

  test("beyond the last stripe is a plan and an end", async () => {
    await cachedObject("page");
    const { frames } = await readBundle(`${world.url}/v1/read/page?from=99`, "page");
    expect(frames.map(({ type }) => type)).toEqual(["end"]);
  });
});

describe("a cache value", () => {
  const spoil = async (name: string, change: (value: Uint8Array) => Uint8Array): Promise<void> => {
    const kv = await world.kv();
    const value = new Uint8Array((await kv.get(name, "arrayBuffer"))!);
    await kv.put(name, change(value).slice().buffer);
  };

  test.each([
    ["empty", () => new Uint8Array(0)],
    ["truncated", (value: Uint8Array) => value.subarray(0, value.length - 1)],
    ["no frames at all", () => new TextEncoder().encode("<html>not a chunk</html>")],
  ])("that is %s is a miss of every chunk promised, and the read goes elsewhere", async (_name, change) => {
    const version = await cachedObject("page");
    await spoil(`chunks:${version}:1`, change);
    const { plan, frames } = await readBundle(`${world.url}/v1/read/page`, "page");
    const missed = frames.filter(({ type }) => type === "miss");
    expect(missed.map(({ stripe, chunk }) => [stripe, chunk])).toEqual(plan.cached.map((chunk) => [1, chunk]));
    expect((await readObject("page")).bytes).toEqual(content);
    expect((await world.status()).isolate.chunkCache.malformed).toBeGreaterThan(0);
  });

  test("with wrong bytes does not spoil a read, and the next period replaces it", async () => {
    const version = await cachedObject("page");
    const intact = new Uint8Array((await (await world.kv()).get(`chunks:${version}:0`, "arrayBuffer"))!);
    await spoil(`chunks:${version}:0`, (value) => value.map((byte, i) => (i === 100 ? byte ^ 1 : byte)));
    expect(await readObject("page")).toEqual({ kind: "degraded", bytes: content });
    await world.pops.cron(POP);
    const repaired = new Uint8Array((await (await world.kv()).get(`chunks:${version}:0`, "arrayBuffer"))!);
    expect(repaired).toEqual(intact);
  });
});

describe("KV", () => {
  test("that is down costs no read", async () => {
    await cachedObject("page");
    await world.pops.setFault(POP, { kv: "down" });
    expect(await readObject("page")).toEqual({ kind: "origin", bytes: content });
    const { frames } = await readBundle(`${world.url}/v1/read/page`, "page");
    expect(frames.filter(({ type }) => type === "miss")).toHaveLength(16);
    expect((await world.pops.fault(POP)).fired).toBeGreaterThan(0);
  });

  test("that is down during a period leaves the cache as it was, and the next period catches up", async () => {
    await world.put("page", content);
    await readObject("page");
    await world.pops.setFault(POP, { kv: "down" });
    await world.pops.cron(POP);
    expect((await world.pops.fault(POP)).fired).toBeGreaterThan(0);
    expect((await world.status()).lastPeriod.errors.length).toBeGreaterThan(0);
    expect((await world.status()).cache.cachedBytes).toBe(0);
    await world.pops.setFault(POP, { kv: "ok" });
    await readObject("page");
    await world.pops.cron(POP);
    expect((await readObject("page")).kind).toBe("edge");
  });

  test("that hangs delays a read by its deadline once, not by each stripe", async () => {
    await cachedObject("page");
    await world.pops.setFault(POP, { kv: "slow" });
    const startMs = performance.now();
    expect((await readObject("page")).bytes).toEqual(content);
    await readBundle(`${world.url}/v1/read/page`, "page");
    // Eight stripes at three seconds each would take twenty-four.
    expect(performance.now() - startMs).toBeLessThan(6_000);
    expect((await world.pops.fault(POP)).fired).toBeGreaterThan(0);
  });

  test("that is stale shows nothing new, and no read is wrong", async () => {
    await cachedObject("page");
    await world.pops.setFault(POP, { kv: "stale" });
    const renewed = randomBytes(150_000, 9);
    const { version } = await world.put("page", renewed);
    await readObject("page");
    await world.pops.cron(POP);
    const { plan, frames } = await readBundle(`${world.url}/v1/read/page`, "page");
    expect(plan.version).toBe(version);
    expect(plan.cached).toHaveLength(4);
    expect(new Set(frames.map(({ type }) => type))).toEqual(new Set(["miss", "end"]));
    expect((await readObject("page")).bytes).toEqual(renewed);
    expect((await world.pops.fault(POP)).fired).toBeGreaterThan(0);
  });
});
