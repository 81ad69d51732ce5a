import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { randomBytes, readBundle, REGIONS, startWorld, type TestWorld } from "../../test/world.ts";

let world: TestWorld;
const content = randomBytes(1_000_000);

beforeEach(async () => {
  world = await startWorld({ MANIFEST_TTL_SECONDS: "600" });
  // As many chunks as a read starts with: on a slow machine there is no further one that a late read could ask for.
  await world.put("cold", content, { k: 4, m: 1, stripeBytes: 1_000_000 });
});
afterEach(() => world.close());

/** Holds all chunks back. Returns how to let them go, which waits until `followers` reads share the one that leads. */
function holdChunks(): (followers: number) => Promise<void> {
  const held = Promise.withResolvers<void>();
  for (const region of REGIONS) world.buckets.faults.set(region, { chunksAfter: held.promise });
  return async (followers) => {
    const stripes = async (): Promise<unknown> => (await world.status()).isolate.stripes;
    await vi.waitFor(async () => expect(await stripes()).toEqual({ led: 1, followed: followers }), 60_000);
    await vi.waitFor(() => expect(world.buckets.fired.size, "chunks are held back").toBeGreaterThan(0), 60_000);
    held.resolve();
  };
}

const chunkReads = (): number => world.buckets.requests.filter(({ name }) => name.startsWith("chunks/")).length;

test("100 concurrent cold GETs of one object make one set of k + delta bucket reads", async () => {
  const release = holdChunks();
  const reading = Array.from({ length: 100 }, async () => {
    const response = await fetch(`${world.url}/o/cold`);
    expect(response.headers.get("x-agarose-read")).toBe("origin");
    expect(response.headers.get("server-timing")).toMatch(/region-r\d/);
    return Buffer.compare(new Uint8Array(await response.arrayBuffer()), content);
  });
  await release(99);
  expect(new Set(await Promise.all(reading))).toEqual(new Set([0]));
  expect(chunkReads()).toBe(4 + 1);
  expect((await world.status()).isolate.stripes).toEqual({ led: 1, followed: 99 });
});

test("clients that go away, the first among them, do not disturb the others", async () => {
  const release = holdChunks();
  const abort = new AbortController();
  const leaving = [fetch(`${world.url}/o/cold`, { signal: abort.signal })];
  // The first of them leads the others.
  await vi.waitFor(() => expect(chunkReads()).toBeGreaterThan(0), 60_000);
  for (let i = 0; i < 20; i++) leaving.push(fetch(`${world.url}/o/cold`, { signal: abort.signal }));
  const staying = Array.from({ length: 40 }, async () => (await fetch(`${world.url}/o/cold`)).arrayBuffer());
  const { isolate } = await vi.waitFor(async () => {
    const status = await world.status();
    expect(status.isolate.stripes.followed).toBe(20 + 40);
    return status;
  }, 60_000);
  expect(isolate.stripes.led).toBe(1);
  abort.abort();
  const left = await Promise.allSettled(leaving);
  await release(20 + 40);
  expect(left.every(({ status }) => status === "rejected")).toBe(true);
  for (const bytes of await Promise.all(staying)) expect(Buffer.compare(new Uint8Array(bytes), content)).toBe(0);
  expect(chunkReads()).toBe(4 + 1);
});

test("a region that fails again and again counts as down within one isolate, until it answers again", async () => {
  await world.put("striped", content, { stripeBytes: 50_000 });
  world.buckets.faults.set("r1", { down: true });
  const read = async (): Promise<void> => {
    const body = await (await fetch(`${world.url}/o/striped`)).arrayBuffer();
    expect(Buffer.compare(new Uint8Array(body), content)).toBe(0);
  };
  const isDown = async (): Promise<boolean | undefined> =>
    (await readBundle(`${world.url}/v1/read/striped`, "striped")).plan.regions.find(({ name }) => name === "r1")!.down;
  expect(await isDown()).toBeUndefined();
  for (let i = 0; i < 20 && !(await isDown()); i++) await read();
  expect(await isDown()).toBe(true);
  expect(world.buckets.fired.get("r1")).toBeGreaterThanOrEqual(5);
  world.buckets.requests.length = 0;
  await read();
  const asked = new Set(world.buckets.requests.map(({ region }) => region));
  expect(asked.has("r1")).toBe(false);
  world.buckets.faults.clear();
  await new Promise((resolve) => setTimeout(resolve, 5_100));
  expect(await isDown()).toBeUndefined();
  await read();
  expect(await isDown()).toBeUndefined();
});
