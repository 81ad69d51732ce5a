import { openControlledApp, read, sha256 } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";

for (const kv of ["down", "slow", "stale"] as const) {
  test(`with KV ${kv}, cached objects still read`, async ({ context, world, putRandom }) => {
    const content = await putRandom(`faults/kv-${kv}`, 1_000_000);
    const page = await openControlledApp(context, world);
    for (let i = 0; i < 5; i++) await read(page, `faults/kv-${kv}`);
    await world.cron();
    // At this scale the PoPs are equally near, so any of them may be asked.
    for (const { name } of world.pops) await world.pop(name).kv(kv);
    // A stale namespace shows only once something has been written: the next configuration.
    if (kv === "stale") await world.cron();
    // For a few seconds the client uses its known plan, and the PoP its known configuration.
    const readsUntilFired = async (): Promise<number> => {
      expect(await read(page, `faults/kv-${kv}`)).toMatchObject({ status: 200, sha256: sha256(content) });
      const fired = await Promise.all(world.pops.map(({ name }) => world.pop(name).fired()));
      return fired.reduce((sum, count) => sum + count, 0);
    };
    await expect.poll(readsUntilFired, { intervals: [500] }).toBeGreaterThan(0);
    expect(await read(page, `faults/kv-${kv}`)).toMatchObject({ status: 200, sha256: sha256(content) });
  });
}
