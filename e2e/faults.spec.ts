import { faultCases, NEAR, NEXT } from "./cases/faults.ts";
import { openControlledApp, read, sha256 } from "./fixtures/app.ts";
import { runInChromium } from "./fixtures/chromium.ts";
import { expect, test } from "./fixtures/test.ts";

runInChromium(faultCases);

test("caches make up for the region too many", async ({ context, world, putRandom }) => {
  const content = await putRandom("faults/cached", 1_000_000);
  const page = await openControlledApp(context, world);
  for (let i = 0; i < 5; i++) await read(page, "faults/cached");
  await world.cron();
  await world.cron();
  await world.breakRegion(NEAR, { down: true });
  await world.breakRegion(NEXT, { down: true });
  const fresh = await openControlledApp(context, world);
  const answer = await read(fresh, "faults/cached");
  expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
});

for (const kv of ["down", "slow", "stale"] as const) {
  test(`with KV ${kv}, cached objects still read`, async ({ context, world, putRandom }) => {
    const content = await putRandom(`faults/kv-${kv}`, 1_000_000);
    const page = await openControlledApp(context, world);
    for (let i = 0; i < 5; i++) await read(page, `faults/kv-${kv}`);
    await world.cron();
    // At this scale the PoPs are equally near, so any of them may be asked.
    for (const { name } of world.pops) await world.setPop(name, { kv });
    // A stale namespace shows only once something has been written: the next configuration.
    if (kv === "stale") await world.cron();
    // The client goes on by its known plan, and the PoP by its known configuration, for a few seconds.
    const readsUntilFired = async (): Promise<number> => {
      expect(await read(page, `faults/kv-${kv}`)).toMatchObject({ status: 200, sha256: sha256(content) });
      return world.kvFaultsFired();
    };
    await expect.poll(readsUntilFired, { timeout: 30_000, intervals: [500] }).toBeGreaterThan(0);
    expect(await read(page, `faults/kv-${kv}`)).toMatchObject({ status: 200, sha256: sha256(content) });
  });
}
