import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startBuckets, type BucketServer } from "../test/bucket-server.ts";
import { putObject, randomBytes, REGIONS } from "../test/objects.ts";

/** Its types are those of Cloudflare's runtime, and those of this file are Node's. */
const { createPop } = (await import("./pop.ts" as string)) as { createPop(options: object): EmbeddedPop };
interface EmbeddedPop {
  fetch(request: Request): Promise<Response>;
}

let buckets: BucketServer;
beforeAll(async () => {
  buckets = await startBuckets();
});
afterAll(() => buckets.close());

const embedded = (options: object = {}): EmbeddedPop =>
  createPop({
    regions: REGIONS.map((name) => ({ name, url: `${buckets.url}/${name}` })),
    publicKeys: [],
    variables: { UNSIGNED: "true", MANIFEST_TTL_SECONDS: "0" },
    ...options,
  });
const get = (pop: EmbeddedPop, path: string, init?: RequestInit): Promise<Response> =>
  pop.fetch(new Request(`https://app.example${path}`, init));
const bytesOf = async (response: Response): Promise<Uint8Array> => new Uint8Array(await response.arrayBuffer());

test("serves an object, a range of it, and its head, with nothing but fetch", async () => {
  const content = randomBytes(300_000);
  await putObject(buckets, "photos/cat", content);
  const pop = embedded({ name: "mine" });
  const whole = await get(pop, "/o/photos/cat");
  expect([whole.status, whole.headers.get("x-agarose-pop"), whole.headers.get("x-agarose-read")]).toEqual([
    200,
    "mine",
    "origin",
  ]);
  expect(await bytesOf(whole)).toEqual(content);
  const range = await get(pop, "/o/photos/cat", { headers: { range: "bytes=70000-70099" } });
  expect(range.status).toBe(206);
  expect(await bytesOf(range)).toEqual(content.slice(70_000, 70_100));
  const head = await get(pop, "/o/photos/cat", { method: "HEAD" });
  expect([head.status, head.headers.get("content-length")]).toEqual([200, "300000"]);
});

test("serves it while two regions are down and a third sends wrong bytes of one chunk", async () => {
  const content = randomBytes(200_000);
  await putObject(buckets, "photos/dog", content, { k: 3, m: 3 });
  const spoil = (body: Uint8Array): Uint8Array => body.map((byte, i) => (i === 10 ? byte ^ 1 : byte));
  buckets.faults.set("r0", { down: true }).set("r1", { down: true }).set("r2", { spoil });
  buckets.fired.clear();
  try {
    const read = await get(embedded(), "/o/photos/dog");
    expect(await bytesOf(read)).toEqual(content);
    expect(buckets.fired.get("r0"), "a region that is down was asked").toBeGreaterThan(0);
  } finally {
    buckets.faults.clear();
  }
});

test("asks the nearest regions first once it has probed them", async () => {
  const content = randomBytes(100_000);
  await putObject(buckets, "photos/near", content, { k: 2, m: 4 });
  buckets.faults.set("r0", { delayMs: 150 }).set("r1", { delayMs: 150 });
  const pop = embedded({ variables: { UNSIGNED: "true", MANIFEST_TTL_SECONDS: "60" } });
  try {
    await bytesOf(await get(pop, "/o/photos/near"));
    await vi.waitUntil(() => buckets.requests.filter(({ name }) => name.includes("agarose-probe")).length >= 18);
    await vi.waitFor(
      async () => {
        buckets.requests.length = 0;
        // A range that no read has had, so that nothing comes from memory.
        const start = Math.floor(Math.random() * 90_000);
        await bytesOf(await get(pop, "/o/photos/near", { headers: { range: `bytes=${start}-${start + 9}` } }));
        const asked = new Set(buckets.requests.map(({ region }) => region));
        expect([...asked].filter((region) => region === "r0" || region === "r1")).toEqual([]);
      },
      { timeout: 10_000, interval: 200 },
    );
  } finally {
    buckets.faults.clear();
  }
});

test("gives a service worker plans and bundles, and has no route that needs state", async () => {
  await putObject(buckets, "photos/owl", randomBytes(5_000));
  const pop = embedded();
  const bundle = await get(pop, "/v1/read/photos/owl");
  expect([bundle.status, bundle.headers.get("content-type")]).toEqual([200, "application/vnd.agarose.bundle"]);
  await bytesOf(bundle);
  const plans = await get(pop, "/v1/plans?key=photos/owl&bodies=1");
  expect((await bytesOf(plans)).length).toBeGreaterThan(5_000);
  for (const path of ["/v1/status", "/metrics", "/"]) expect((await get(pop, path)).status, path).toBe(404);
  expect((await get(pop, "/v1/purge", { method: "POST" })).status).toBe(404);
});

test("a private key needs its token, as at a deployed PoP", async () => {
  await putObject(buckets, "members/plan", randomBytes(1_000));
  const variables = { UNSIGNED: "true", PRIVATE_PREFIXES: '["members/"]', READ_TOKEN: "token-of-16-chars" };
  const pop = embedded({ variables });
  expect((await get(pop, "/o/members/plan")).status).toBe(403);
  const headers = { authorization: "Bearer token-of-16-chars" };
  expect((await get(pop, "/o/members/plan", { headers })).status).toBe(200);
});

test("refuses an object of a publisher that it does not know, and a wrong configuration at once", async () => {
  await putObject(buckets, "photos/fake", randomBytes(1_000));
  const stranger = `ed25519:${Buffer.from(randomBytes(32)).toString("base64")}`;
  const read = await get(embedded({ publicKeys: [stranger], variables: {} }), "/o/photos/fake");
  expect(await read.json()).toMatchObject({ error: { code: "MANIFEST_UNTRUSTED" } });
  expect(() => embedded({ publicKeys: [], variables: {} })).toThrow(/PUBLISHER_KEYS has 0 keys/);
  expect(() => embedded({ regions: [] })).toThrow(/REGIONS/);
});
