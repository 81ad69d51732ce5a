/** A PoP that trusts publishers: what a bucket says without their signature is not used. */
import { systemSha256 } from "@agarose/core";
import { encodeManifest, manifestName, sealManifest, sealTombstone, type Manifest } from "@agarose/core/format";
import { testPublisher, type TestPublisher } from "@agarose/core/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseExposition } from "../../test/prometheus.ts";
import { ADMIN_TOKEN, randomBytes, readObject, REGIONS, startWorld, type TestWorld } from "../../test/world.ts";

const CONTENT = randomBytes(1000, 1);
const FORGED = randomBytes(1000, 2);

let publisher: TestPublisher;
let world: TestWorld;

beforeEach(async () => {
  publisher = await testPublisher();
  world = await startWorld({ PUBLISHER_KEYS: JSON.stringify([publisher.publicKey]), MANIFEST_TTL_SECONDS: "0" });
});
afterEach(() => world.close());

/** Puts the manifest of `key` into `regions`, signed where `isSigned`. */
async function place(manifest: Manifest, regions: readonly string[], isSigned: boolean): Promise<void> {
  const sealed = await sealManifest(manifest, systemSha256, isSigned ? publisher.sign : undefined);
  for (const region of regions) {
    world.buckets.objects.set(`${region}/${manifestName(manifest.key)}`, encodeManifest(sealed));
  }
}

test("a forged manifest of five regions loses against the signed one of the sixth", async () => {
  const honest = await world.put("page", CONTENT);
  const forged = await world.put("page", FORGED);
  await place({ ...forged, generation: 9 }, REGIONS.slice(0, 5), false);
  await place(honest, REGIONS.slice(5), true);
  expect((await readObject(world, "page")).bytes).toEqual(CONTENT);
  const asked = world.buckets.requests.filter(({ name }) => name === manifestName("page"));
  expect(asked.length, "a forged one was fetched, too").toBeGreaterThan(1);
  const metrics = await fetch(`${world.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  const counted = parseExposition(await metrics.text()).get("agarose_isolate_unusable_manifests_total")!.samples;
  expect(counted.length).toBeGreaterThan(0);
  for (const { labels, value } of counted) {
    expect(labels).toMatchObject({ code: "MANIFEST_UNTRUSTED" });
    expect(REGIONS.slice(0, 5)).toContain(labels["region"]);
    expect(value).toBeGreaterThan(0);
  }
});

test("an object whose manifests are all unsigned is refused, with the reason", async () => {
  await world.put("page", CONTENT);
  const response = await fetch(`${world.url}/o/page`);
  expect(response.status).toBe(502);
  expect(await response.json()).toMatchObject({ error: { code: "MANIFEST_UNTRUSTED" } });
});

test("a removed object is not found, though one region that slept still has it", async () => {
  const manifest = await world.put("page", CONTENT);
  await place(manifest, REGIONS.slice(5), true);
  const grave = { key: "page", generation: 2, modified: "2026-01-02T03:04:06.000Z" };
  const tombstone = encodeManifest(await sealTombstone(grave, publisher.sign));
  for (const region of REGIONS.slice(0, 5)) world.buckets.objects.set(`${region}/${manifestName("page")}`, tombstone);
  expect((await fetch(`${world.url}/o/page`)).status).toBe(404);
});

test("buckets that go back to an old signed manifest do not take the PoP back, unless a majority does", async () => {
  const old = await world.put("page", FORGED);
  const current = { ...(await world.put("page", CONTENT)), generation: 2 };
  await place(current, REGIONS, true);
  expect((await readObject(world, "page")).bytes).toEqual(CONTENT);
  const asked = (): string[] => {
    return world.buckets.requests.filter(({ name }) => name === manifestName("page")).map(({ region }) => region);
  };
  for (const lying of [REGIONS.slice(0, 3), REGIONS.slice(3)]) {
    await place(current, REGIONS, true);
    await place(old, lying, true);
    for (let i = 0; i < 10; i++) expect((await readObject(world, "page")).bytes).toEqual(CONTENT);
  }
  expect(new Set(asked()).size, "also regions that lie were asked first").toBeGreaterThan(3);
  await place(old, REGIONS.slice(0, 4), true);
  expect((await readObject(world, "page")).bytes, "a put that was undone").toEqual(FORGED);
});

test("a region that has sent five forgeries in a row is not asked for manifests while others answer", async () => {
  const liar = REGIONS[0]!;
  const lies: string[] = [];
  for (let i = 0; i < 12; i++) {
    const key = `page-${i}`;
    const honest = await world.put(key, CONTENT);
    await place(honest, REGIONS, true);
    await place({ ...honest, generation: 9 }, [liar], false);
    expect((await readObject(world, key)).bytes).toEqual(CONTENT);
    if (world.buckets.requests.some(({ region, name }) => region === liar && name === manifestName(key)))
      lies.push(key);
  }
  expect(lies).toEqual(["page-0", "page-1", "page-2", "page-3", "page-4"]);
});
