/** Exchanges between periods: what is read now comes from the edge within seconds, and KV learns of it later. */
import { afterEach, expect, test } from "vitest";
import { POP, randomBytes, readBundle, readObject, startWorld, type TestWorld } from "../../test/world.ts";

let world: TestWorld;
afterEach(() => world.close());

const content = randomBytes(200_000);
/** As at deployed PoPs. */
const EXCHANGE_SECONDS = "5";

/** Chunks of the object that the buckets have been asked for since the last question. */
function chunksAsked(): number {
  const asked = world.buckets.requests.filter(({ name }) => name.startsWith("chunks/")).length;
  world.buckets.requests.length = 0;
  return asked;
}

test("a hot object comes from the edge within 10 s of its second read, without a KV write", async () => {
  world = await startWorld({ EXCHANGE_SECONDS });
  await world.put("page", content);
  // A bundle without chunks: its reader takes them from the buckets, so the PoP has fetched none.
  for (let i = 0; i < 2; i++) expect((await readBundle(`${world.url}/v1/read/page`, "page")).plan.cached).toEqual([]);
  const startMs = performance.now();
  let bundle = await readBundle(`${world.url}/v1/read/page`, "page");
  while (bundle.plan.cached.length === 0 && performance.now() - startMs < 20_000) {
    await new Promise((resolve) => setTimeout(resolve, 250));
    bundle = await readBundle(`${world.url}/v1/read/page`, "page");
  }
  const tookMs = performance.now() - startMs;
  expect(bundle.plan).toMatchObject({ cached: [0, 1, 2, 3], probable: [0, 1, 2, 3] });
  expect(bundle.frames.filter(({ type }) => type === "chunk")).toHaveLength(16);
  expect(tookMs).toBeLessThan(10_000);
  chunksAsked();
  expect(await readObject(world, "page")).toEqual({ kind: "edge", bytes: content });
  expect(chunksAsked()).toBe(0);
  const { spending, cache, lastExchange } = (await world.status()) as Awaited<ReturnType<TestWorld["status"]>> & {
    lastExchange: object;
  };
  expect(spending).toMatchObject({ writes: 0 });
  expect(cache.objects).toEqual([]);
  expect(lastExchange).toMatchObject({ kept: 1, errors: [] });

  await world.pops.cron(POP);
  expect((await world.status()).lastPeriod).toMatchObject({ errors: [], written: 4, fetchedBytes: 0 });
  expect(chunksAsked(), "the period takes what the exchange has kept").toBe(0);
}, 60_000);

test("what reads have fetched twice is read from there at once", async () => {
  world = await startWorld({ EXCHANGE_SECONDS });
  await world.put("page", content);
  for (let i = 0; i < 2; i++) expect((await readObject(world, "page")).kind).toBe("origin");
  chunksAsked();
  expect(await readObject(world, "page")).toEqual({ kind: "edge", bytes: content });
  expect(chunksAsked()).toBe(0);
});

test("what the Cache API has forgotten is a miss, and the buckets replace it", async () => {
  world = await startWorld({ EXCHANGE_SECONDS });
  const { version } = await world.put("page", content);
  for (let i = 0; i < 2; i++) await readObject(world, "page");
  const caches = await world.pops.miniflare.getCaches();
  const cache = await caches.open("agarose");
  for (let stripe = 0; stripe < 4; stripe++) {
    const name = `chunks:${version}:${stripe}:0,1,2,3`;
    expect(await cache.delete(`https://${new URL(world.url).host}/${POP}/${name}`)).toBe(true);
  }
  expect((await readObject(world, "page")).bytes).toEqual(content);
  expect((await readBundle(`${world.url}/v1/read/page`, "page")).plan).not.toHaveProperty("probable");
});
