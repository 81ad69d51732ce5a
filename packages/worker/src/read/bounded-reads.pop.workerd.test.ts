/**
 * A region that missed a put or a removal: a PoP may show it for a moment, and not beyond MANIFEST_TTL_SECONDS.
 */
import { encodeManifest, manifestName, sealTombstone, type Manifest } from "@agarose/core/format";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { parseExposition } from "../../test/prometheus.ts";
import { ADMIN_TOKEN, randomBytes, REGIONS, startWorld, type TestWorld } from "../../test/world.ts";

const TTL_SECONDS = 1;
const [OLD, NEW] = [randomBytes(1000, 1), randomBytes(1000, 2)];
/** The region that a PoP without estimates asks first. */
const FIRST = REGIONS[0]!;

let world: TestWorld;

beforeEach(async () => (world = await startWorld({ MANIFEST_TTL_SECONDS: String(TTL_SECONDS) })));
afterEach(() => world.close());

/** Puts a version of `key` into all regions but those of `missed`, which keep what they have. */
async function put(key: string, content: Uint8Array, generation: number, missed: readonly string[]): Promise<Manifest> {
  const { objects } = world.buckets;
  const kept = missed.map(
    (region) => [`${region}/${manifestName(key)}`, objects.get(`${region}/${manifestName(key)}`)] as const,
  );
  const manifest = await world.put(key, content, { generation });
  for (const [name, bytes] of kept) {
    if (bytes) objects.set(name, bytes);
    else objects.delete(name);
  }
  return manifest;
}

async function read(key: string): Promise<{ status: number; bytes: Uint8Array }> {
  const response = await fetch(`${world.url}/o/${key}`);
  return { status: response.status, bytes: new Uint8Array(await response.arrayBuffer()) };
}

test("the put that the nearest region missed is read right after the first look, and stays", async () => {
  await put("page", OLD, 1, []);
  await put("page", NEW, 2, [FIRST]);
  expect((await read("page")).bytes, "the first sound manifest").toEqual(OLD);
  await vi.waitFor(async () => expect((await read("page")).bytes).toEqual(NEW), 10_000);
  await new Promise((resolve) => setTimeout(resolve, 1000 * TTL_SECONDS + 100));
  for (let i = 0; i < 3; i++) expect((await read("page")).bytes).toEqual(NEW);
});

test("a version that was held when it was replaced is not read beyond its time", async () => {
  await put("page", OLD, 1, []);
  expect((await read("page")).bytes).toEqual(OLD);
  await put("page", NEW, 2, [FIRST]);
  await new Promise((resolve) => setTimeout(resolve, 1000 * TTL_SECONDS + 100));
  expect((await read("page")).bytes).toEqual(NEW);
});

test("a removal that the nearest region missed holds, though that region still has the object", async () => {
  await put("page", OLD, 1, []);
  const grave = { key: "page", generation: 2, modified: "2026-01-02T03:04:06.000Z" };
  const tombstone = encodeManifest(await sealTombstone(grave));
  for (const region of REGIONS.slice(1)) world.buckets.objects.set(`${region}/${manifestName("page")}`, tombstone);
  await read("page");
  await vi.waitFor(async () => expect((await read("page")).status).toBe(404), 10_000);
});

test("a region that is found behind is asked last, counted, and named with its key for whoever repairs", async () => {
  await put("page", OLD, 1, []);
  await put("page", NEW, 2, [FIRST]);
  await read("page");
  await vi.waitFor(async () => expect((await read("page")).bytes).toEqual(NEW), 10_000);
  expect((await world.status()).behind).toEqual([{ key: "page", regions: [FIRST] }]);
  const metrics = await fetch(`${world.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  const counted = parseExposition(await metrics.text()).get("agarose_isolate_regions_behind_total")!.samples;
  expect(counted).toMatchObject([{ labels: { region: FIRST } }]);
  await put("other", NEW, 1, []);
  await read("other");
  const asked = world.buckets.requests.filter(({ name }) => name === manifestName("other"));
  expect(asked[0]!.region).not.toBe(FIRST);
});

test("while no majority answers, the first sound manifest is read, and counted as unconfirmed", async () => {
  await world.put("page", OLD, { k: 2, m: 4 });
  const down = REGIONS.slice(1, 4);
  for (const region of down) world.buckets.faults.set(region, { down: true });
  expect((await read("page")).bytes).toEqual(OLD);
  await vi.waitFor(async () => {
    const { isolate } = await world.status();
    expect(isolate.unconfirmedLookups).toBeGreaterThan(0);
  }, 10_000);
  for (const region of down) expect(world.buckets.fired.get(region)).toBeGreaterThan(0);
});

test("where the regions that answer disagree, nothing older is read than what one of them has just shown", async () => {
  await world.put("page", OLD, { k: 2, m: 4 });
  const old = REGIONS.slice(0, 2).map((region) => {
    const name = `${region}/${manifestName("page")}`;
    return [name, world.buckets.objects.get(name)!] as const;
  });
  await world.put("page", NEW, { k: 2, m: 4, generation: 2 });
  for (const [name, bytes] of old) world.buckets.objects.set(name, bytes);
  // Four of six regions have it, and one of these is down: three of five are no majority of six.
  const [down] = REGIONS.slice(5);
  world.buckets.faults.set(down!, { down: true });
  expect((await read("page")).bytes, "the first sound manifest").toEqual(OLD);
  await vi.waitFor(async () => expect((await read("page")).bytes).toEqual(NEW), 10_000);
  await new Promise((resolve) => setTimeout(resolve, 1000 * TTL_SECONDS + 100));
  expect((await read("page")).bytes).toEqual(NEW);
  expect(world.buckets.fired.get(down!)).toBeGreaterThan(0);
  const [found] = (await world.status()).behind;
  expect(found!.key, "whoever repairs learns of it").toBe("page");
  expect(REGIONS.slice(0, 2)).toEqual(expect.arrayContaining(found!.regions));
});
