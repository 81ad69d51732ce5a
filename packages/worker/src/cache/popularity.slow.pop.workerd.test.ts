/** The influences on the cache over a whole period: many readers, and neither one client nor keys without an object. */
import { afterEach, expect, test } from "vitest";
import { openRequest } from "../../test/tcp-client.ts";
import { clientHeaders, POP, randomBytes, startWorld, type TestWorld } from "../../test/world.ts";

const BYTES = 100_000;
/** Room for the data chunks of one object, or of several. */
const roomFor = (objects: number): string => String(objects * 101_000);

let world: TestWorld;
afterEach(() => world.close());

const start = async (objects: number, keys: readonly string[], prices: Record<string, string> = {}): Promise<void> => {
  world = await startWorld({
    POLICY: "exact",
    CACHE_BYTES: roomFor(objects),
    MANIFEST_TTL_SECONDS: "600",
    FUNCTIONAL: "false",
    ...prices,
  });
  for (const [i, key] of keys.entries()) await world.put(key, randomBytes(BYTES, i + 1));
};

const get = async (path: string, address: string, method = "GET"): Promise<number> => {
  const response = await fetch(`${world.url}${path}`, { method, headers: clientHeaders(address) });
  await response.arrayBuffer();
  return response.status;
};

const cached = async (): Promise<string[]> => {
  const { objects } = (await world.status()).cache;
  return objects.filter(({ chunks }) => chunks.length > 0).map(({ key }) => key);
};

test("one client that requests much and finishes little displaces nothing that many clients read", async () => {
  await start(1, ["front-page", "junk"]);
  for (let i = 0; i < 60; i++) expect(await get("/o/front-page", `203.0.113.${i}`)).toBe(200);
  const path = "/v1/read/junk";
  for (let i = 0; i < 100; i++) expect(await get(path, "198.51.100.1")).toBe(200);
  for (let i = 0; i < 100; i++) {
    (await openRequest(world.url, { path: "/o/junk", headers: clientHeaders("198.51.100.1") })).resetAndDestroy();
  }
  for (let i = 0; i < 2; i++) {
    await world.pops.cron(POP);
    expect(await cached()).toEqual(["front-page"]);
  }
});

test.each([
  ["storage costs more than it saves", "1", []],
  ["milliseconds alone count", "0", ["front-page"]],
] as const)("where %s (WAITING_USD_PER_HOUR = %s), the cache keeps %j", async (_, WAITING_USD_PER_HOUR, kept) => {
  const prices = { KV_STORAGE_USD_PER_GB_MONTH: "1000000000000", BUDGET_USD_PER_MONTH: "", WAITING_USD_PER_HOUR };
  await start(1, ["front-page"], prices);
  for (let i = 0; i < 10; i++) expect(await get("/o/front-page", `203.0.113.${i}`)).toBe(200);
  await world.pops.cron(POP);
  expect(await cached()).toEqual(kept);
});

test("plans alone, and HEAD, make nothing popular", async () => {
  await start(1, ["read-once", "junk"]);
  await get("/o/read-once", "203.0.113.1");
  for (let i = 0; i < 60; i++) {
    expect(await get("/v1/plans?key=junk", `198.51.100.${i}`)).toBe(200);
    expect(await get("/o/junk", `198.51.100.${i}`, "HEAD")).toBe(200);
    expect(await get("/v1/read/junk", `198.51.100.${i}`, "HEAD")).toBe(200);
  }
  await world.pops.cron(POP);
  expect(await cached()).toEqual(["read-once"]);
});

test("keys without an object, asked for by many clients, cost neither the pages nor the buckets", async () => {
  const pages = ["page0", "page1", "page2", "page3"];
  await start(pages.length, pages);
  for (const page of pages) for (let i = 0; i < 15; i++) await get(`/o/${page}`, `203.0.113.${i}`);
  for (let client = 0; client < 21; client++) {
    const address = `198.51.100.${client}`;
    expect(await get(`/o/ghost-${client}`, address)).toBe(404);
  }
  world.buckets.requests.length = 0;
  await world.pops.cron(POP);
  const lookups = world.buckets.requests.filter(({ name }) => name.startsWith("manifests/ghost"));
  expect(lookups).toEqual([]);
  expect((await cached()).toSorted()).toEqual(pages);
  await world.pops.cron(POP);
  expect((await cached()).toSorted()).toEqual(pages);
});
