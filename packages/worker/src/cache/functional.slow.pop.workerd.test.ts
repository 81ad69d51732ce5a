/** Functional chunks: a PoP that caches rows of the code which no bucket has. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { POP, randomBytes, readBundle, readObject, startWorld, type TestWorld } from "../../test/world.ts";

let world: TestWorld;
const content = randomBytes(200_000);
/** A (4, 2) code over six regions: stored chunks are 0 to 5. */
const N = 6;

beforeEach(async () => {
  // Room for two of four chunks.
  world = await startWorld({ FUNCTIONAL: "true", CACHE_BYTES: "110000" });
  await world.put("page", content);
  // At a millisecond each, noise would decide whether rows or copies save more.
  for (let region = 0; region < N; region++) world.buckets.faults.set(`r${region}`, { delayMs: 15 * (1 + region) });
  await readObject(world, "page");
  await world.pops.cron(POP);
  expect((await world.status()).lastPeriod).toMatchObject({
    errors: [],
    written: 4,
    reconstructed: 0,
    // k = 4 chunks of each stripe, for two rows.
    fetchedBytes: content.length,
    filledBytes: content.length / 2,
  });
});
afterEach(() => world.close());

const cachedChunks = async (): Promise<number[]> => (await world.status()).cache.objects[0]!.chunks;

test("plan and bundle announce and carry rows beyond those stored, and the edge decodes with them", async () => {
  const chunks = await cachedChunks();
  expect(chunks).toHaveLength(2);
  for (const chunk of chunks) expect(chunk).toBeGreaterThanOrEqual(N);
  const { plan, frames } = await readBundle(`${world.url}/v1/read/page`, "page");
  expect(plan.cached).toEqual(chunks);
  expect(frames.filter(({ type }) => type === "chunk").map(({ chunk }) => chunk)).toEqual(
    Array.from({ length: 4 }, () => chunks).flat(),
  );
  expect(await readObject(world, "page")).toEqual({ kind: "mixed", bytes: content });
});

test("any two stored chunks complete a read, so it survives four regions", async () => {
  for (const region of ["r0", "r1", "r2", "r4"]) world.buckets.faults.set(region, { down: true });
  expect((await readObject(world, "page")).bytes).toEqual(content);
  expect(world.buckets.fired.size).toBeGreaterThan(0);
});

test("one that is corrupt in KV spoils no read, and the next period computes it again", async () => {
  const { version } = (await world.status()).cache.objects[0]!;
  const name = `chunks:${version}:0`;
  const kv = await world.kv();
  const intact = new Uint8Array((await kv.get(name, "arrayBuffer"))!);
  await kv.put(name, intact.map((byte, i) => (i === 100 ? byte ^ 1 : byte)).buffer);
  // So late that the read looks at the cached rows before it is complete without them.
  for (let region = 0; region < N; region++) world.buckets.faults.set(`r${region}`, { delayMs: 1_000 });
  expect((await readObject(world, "page")).bytes).toEqual(content);
  await world.pops.cron(POP);
  expect(new Uint8Array((await kv.get(name, "arrayBuffer"))!)).toEqual(intact);
});

test("a period with nothing to change writes nothing", async () => {
  await readObject(world, "page");
  await world.pops.cron(POP);
  expect((await world.status()).lastPeriod).toMatchObject({ errors: [], written: 0 });
});
