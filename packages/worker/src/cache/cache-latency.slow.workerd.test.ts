/** The cache is timed: what a PoP keeps in KV depends on how long its KV takes. */
import { afterEach, expect, test } from "vitest";
import { clientHeaders, POP, randomBytes, REGIONS, startWorld, type TestWorld } from "../../test/world.ts";

let world: TestWorld;
afterEach(() => world.close());

const OBJECTS = 12;
const PERIODS = 24;

/** The PoP's chunks after periods that each read a new object, and the previous one once more. */
async function keptAfterReads(kv: "ok" | "cold"): Promise<{ keys: string[]; firstMs: number }> {
  world = await startWorld({ POLICY: "exact", FUNCTIONAL: "false", EXCHANGE_SECONDS: "0" });
  for (const region of REGIONS) world.buckets.faults.set(region, { delayMs: 25 });
  await world.pops.setFault(POP, { kv });
  const read = async (i: number): Promise<void> => {
    const response = await fetch(`${world.url}/o/seldom-${i}`, { headers: clientHeaders("203.0.113.1") });
    await response.arrayBuffer();
  };
  for (let period = 0; period < PERIODS; period++) {
    if (period < OBJECTS) {
      await world.put(`seldom-${period}`, randomBytes(100_000, period + 1));
      await read(period);
    }
    // The first read of what the last period has written to KV.
    if (period > 0 && period <= OBJECTS) await read(period - 1);
    await world.pops.cron(POP);
  }
  const { cache, cacheLatency } = await world.status();
  const keys = cache.objects.filter(({ chunks }) => chunks.length > 0).map(({ key }) => key);
  return { keys, firstMs: cacheLatency.firstMs! };
}

test("a PoP whose first read of KV takes 150 ms, farther than its buckets, keeps nothing that is seldom read", async () => {
  const { keys, firstMs } = await keptAfterReads("cold");
  expect((await world.pops.fault(POP)).fired).toBeGreaterThan(OBJECTS);
  expect(firstMs).toBeGreaterThan(80);
  expect(keys).toEqual([]);
});

test("a PoP whose KV is near keeps what is seldom read", async () => {
  const { keys, firstMs } = await keptAfterReads("ok");
  expect(firstMs).toBeLessThan(40);
  expect(keys).toHaveLength(OBJECTS);
});
