/** SPREAD: plans share requests among regions whose times overlap (Sprout, section IV-A). */
import { afterEach, expect, test } from "vitest";
import { POP, randomBytes, readBundle, readObject, startWorld, type TestWorld } from "../../test/world.ts";

let world: TestWorld;
afterEach(() => world.close());

const content = randomBytes(100_000);

/** The order of regions in each of `count` plans, nearest first. */
async function orders(count: number): Promise<string[]> {
  const found: string[] = [];
  for (let i = 0; i < count; i++) {
    const { plan } = await readBundle(`${world.url}/v1/read/page`, "page");
    found.push(
      plan.regions
        .toSorted((a, b) => a.meanMs - b.meanMs)
        .map(({ name }) => name)
        .join(),
    );
  }
  return found;
}

test("with it, plans differ in their order, and a region that is down is still marked", async () => {
  world = await startWorld({ SPREAD: "true", POLICY: "off" });
  await world.put("page", content);
  expect(new Set(await orders(20)).size, "regions whose times are unknown are alike").toBeGreaterThan(5);
  world.buckets.faults.set("r0", { down: true });
  for (let period = 0; period < 2; period++) await world.pops.cron(POP);
  expect(world.buckets.fired.get("r0"), "the fault took effect").toBeGreaterThan(0);
  const { plan } = await readBundle(`${world.url}/v1/read/page`, "page");
  expect(plan.regions.find(({ name }) => name === "r0")).toMatchObject({ down: true });
  expect((await readObject(world, "page")).bytes).toEqual(content);
});

test("without it, plans of one configuration are the same", async () => {
  world = await startWorld({ POLICY: "off" });
  await world.put("page", content);
  expect(new Set(await orders(5)).size).toBe(1);
});
