/** The cache is timed: what a PoP keeps in KV depends on how long its KV takes. */
import { afterEach, expect, test } from "vitest";
import { clientHeaders, POP, randomBytes, REGIONS, startWorld, type TestWorld } from "../../test/world.ts";

let world: TestWorld;
afterEach(() => world.close());

test.each([
  ["cold", "whose first read takes 150 ms, farther than the buckets, keeps nothing that is seldom read", []],
  ["ok", "that is near keeps it", ["seldom"]],
] as const)("with KV %s: a PoP %s", async (kv, _, kept) => {
  world = await startWorld({ POLICY: "exact", FUNCTIONAL: "false", EXCHANGE_SECONDS: "0" });
  for (const region of REGIONS) world.buckets.faults.set(region, { delayMs: 25 });
  await world.put("seldom", randomBytes(100_000, 1));
  await world.pops.setFault(POP, { kv });
  for (let i = 0; i < 5; i++) {
    if (i < 2) await (await fetch(`${world.url}/o/seldom`, { headers: clientHeaders("203.0.113.1") })).arrayBuffer();
    await world.pops.cron(POP);
  }
  if (kv === "cold") expect((await world.pops.fault(POP)).fired).toBeGreaterThan(0);
  const { cache, cacheLatency } = await world.status();
  expect(cache.objects.filter(({ chunks }) => chunks.length > 0).map(({ key }) => key)).toEqual(kept);
  if (kv === "cold") expect(cacheLatency.firstMs).toBeGreaterThan(140);
  else expect(cacheLatency.firstMs).toBeLessThan(100);
});
