/** The effect of a region's trouble on the estimates and on reads, in workerd and over real periods. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { POP, randomBytes, readBundle, readObject, startWorld, type Status, type TestWorld } from "../../test/world.ts";

let world: TestWorld;
const content = randomBytes(2_000_000);
const SLOW_MS = 600;
beforeEach(async () => {
  world = await startWorld();
  await world.put("page", content);
  await world.pops.cron(POP);
});
afterEach(() => world.close());

const region = async (name: string): Promise<Status["regions"][number]> =>
  (await world.status()).regions.find((candidate) => candidate.name === name)!;

async function readsRight(): Promise<void> {
  expect(Buffer.compare((await readObject(world, "page")).bytes, content)).toBe(0);
}

test("a region that is lost is down within two periods, and back after two good ones; every read succeeds", async () => {
  world.buckets.faults.set("r1", { down: true });
  await readsRight();
  for (let i = 0; i < 2 && !(await region("r1")).down; i++) {
    await world.pops.cron(POP);
    await readsRight();
  }
  expect(world.buckets.fired.get("r1")).toBeGreaterThan(0);
  expect((await region("r1")).down).toBe(true);
  const { plan } = await readBundle(`${world.url}/v1/read/page`, "page");
  expect(plan.regions.find(({ name }) => name === "r1")!.down).toBe(true);
  world.buckets.faults.clear();
  await world.pops.cron(POP);
  expect((await region("r1")).down, "one good period may be luck").toBe(true);
  await world.pops.cron(POP);
  expect((await region("r1")).down).toBe(false);
  await readsRight();
});

test("a region that turns slow is known to be within two periods, is put last, and comes back", async () => {
  world.buckets.faults.set("r1", { delayMs: SLOW_MS });
  await readsRight();
  for (let i = 0; i < 2 && !(await region("r1")).slow; i++) await world.pops.cron(POP);
  expect(world.buckets.fired.get("r1")).toBeGreaterThan(0);
  const slow = await region("r1");
  expect(slow).toMatchObject({ slow: true, down: false });
  // The estimate restarts with what was late.
  expect(slow.meanMs).toBeGreaterThanOrEqual(SLOW_MS);
  const { plan } = await readBundle(`${world.url}/v1/read/page`, "page");
  expect(plan.regions.toSorted((a, b) => b.meanMs - a.meanMs)[0]!.name).toBe("r1");
  await readsRight();
  world.buckets.faults.clear();
  await world.pops.cron(POP);
  expect((await region("r1")).slow, "one good period may be luck").toBe(true);
  // On a busy machine the second period may measure a slow answer as well.
  for (let i = 0; i < 8 && (await region("r1")).slow; i++) await world.pops.cron(POP);
  const restored = await region("r1");
  expect(restored.slow).toBe(false);
  expect(restored.meanMs).toBeLessThan(slow.meanMs / 2);
});

test("what a byte takes is learned from periods that read a part of a cached object's chunk", async () => {
  for (const name of ["r0", "r1", "r2", "r3", "r4", "r5"]) world.buckets.faults.set(name, { bytesPerMs: 1000 });
  for (let i = 0; i < 16; i++) {
    // Or it would be evicted before long.
    await readObject(world, "page");
    await world.pops.cron(POP);
  }
  const ranges = world.buckets.requests.filter(({ range }) => range === "bytes=0-131071");
  expect(ranges.length).toBeGreaterThanOrEqual(3 * 6);
  const { msPerByte } = await region("r2");
  expect(msPerByte).toBeGreaterThan(0.5 / 1000);
  expect(msPerByte).toBeLessThan(3 / 1000);
});
