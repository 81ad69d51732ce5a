/** Recovered chunks (Liu et al., section V-B): what a PoP keeps while a region is down. */
import { afterEach, expect, test } from "vitest";
import { POP, randomBytes, readBundle, readObject, startWorld, type TestWorld } from "../../test/world.ts";

let world: TestWorld;
afterEach(() => world.close());

const content = randomBytes(200_000);
/** A (4, 2) code: chunk i is in region ri. Parity is the farthest, and the next two chunks fill the cache. */
const DELAYS_MS = { r2: 80, r3: 80, r4: 160, r5: 160 };

/** Room for two of four chunks, cached as `vars` say; then the region of data chunk 0 is lost. */
async function loseRegion(vars: Record<string, string> = {}): Promise<void> {
  world = await startWorld({ POLICY: "exact", DELTA: "0", CACHE_BYTES: "110000", ...vars });
  for (const [region, delayMs] of Object.entries(DELAYS_MS)) {
    world.buckets.faults.set(region, { delayMs });
  }
  await world.put("page", content);
  await readObject(world, "page");
  await world.pops.cron(POP);
  const chunks = await cachedChunks();
  expect(chunks.length).toBeGreaterThan(0);
  expect(chunks, "a read without its region needs a decoder").not.toContain(0);
  world.buckets.faults.set("r0", { down: true });
}

const cachedChunks = async (): Promise<number[]> => (await world.status()).cache.objects[0]?.chunks ?? [];

interface Counted {
  readonly recoveredChunks: number;
  readonly decodedShards: number;
}
const counted = async (): Promise<Counted> => (await world.status()).isolate as unknown as Counted;

/** Reads the object and returns what the isolate counted in the meantime. */
async function countedRead(): Promise<Counted> {
  const before = await counted();
  expect((await readObject(world, "page")).bytes).toEqual(content);
  await expect
    .poll(async () => (await counted()).decodedShards + (await counted()).recoveredChunks)
    .toBeGreaterThan(before.decodedShards + before.recoveredChunks);
  const after = await counted();
  return {
    recoveredChunks: after.recoveredChunks - before.recoveredChunks,
    decodedShards: after.decodedShards - before.decodedShards,
  };
}

test.each(["true", "false"])(
  "while a region is down, its data chunk is kept, and reads decode nothing (FUNCTIONAL %s)",
  async (FUNCTIONAL) => {
    await loseRegion({ FUNCTIONAL });
    const stripes = (await world.status()).cache.objects[0]!.stripes;
    expect((await countedRead()).decodedShards, "before the period").toBeGreaterThanOrEqual(stripes);
    for (let period = 0; period < 2; period++) await world.pops.cron(POP);
    expect(world.buckets.fired.get("r0"), "the fault took effect").toBeGreaterThan(0);
    const { lastPeriod, cache, regions } = await world.status();
    expect(regions.find(({ name }) => name === "r0")!.down).toBe(true);
    expect(lastPeriod.errors).toEqual([]);
    const chunks = cache.objects[0]!.chunks;
    expect(chunks).toContain(0);
    for (const chunk of chunks) expect(chunk, "no parity").toBeLessThan(4);
    expect(await countedRead()).toEqual({ recoveredChunks: stripes, decodedShards: 0 });
    const { frames } = await readBundle(`${world.url}/v1/read/page`, "page");
    expect(frames.filter(({ type, chunk }) => type === "chunk" && chunk === 0)).toHaveLength(stripes);
    expect((await counted()).recoveredChunks).toBe(2 * stripes);
  },
);

test("with RECOVERED false, the cache stays as it is", async () => {
  await loseRegion({ RECOVERED: "false" });
  const before = await cachedChunks();
  for (let period = 0; period < 2; period++) await world.pops.cron(POP);
  expect(world.buckets.fired.get("r0"), "the fault took effect").toBeGreaterThan(0);
  expect((await world.status()).regions.find(({ name }) => name === "r0")!.down).toBe(true);
  expect(await cachedChunks()).toEqual(before);
  expect((await countedRead()).decodedShards).toBeGreaterThan(0);
});

test("status names the ideas at work and those that are not, with the reason", async () => {
  await loseRegion();
  const ideas = async (): Promise<Record<string, string | null>> => {
    const { ideas: all } = (await world.status()) as unknown as { ideas: { name: string; reason: string | null }[] };
    return Object.fromEntries(all.map(({ name, reason }) => [name, reason]));
  };
  expect(await ideas()).toEqual({
    caching: null,
    lateBinding: "DELTA is 0",
    functional: null,
    cooperation: "PEERS or PEER_KEY is not set",
    recovered: "no region is down",
  });
  for (let period = 0; period < 2; period++) await world.pops.cron(POP);
  expect(await ideas()).toMatchObject({ recovered: null });
});
