import { openControlledApp, read, sha256 } from "./fixtures/app.ts";
import { expect, test } from "./fixtures/test.ts";

/** 9+3 over six regions has two chunks in each, so one region may be lost and a second one is one chunk too many. */
const NEAR = "frankfurt";
const NEXT = "dublin";

test("with as many regions down as the layout survives, reads are right and say that they were degraded", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("faults/survived", 5_000_000);
  await world.breakRegion(NEAR, { down: true });
  const page = await openControlledApp(context, world);
  const answer = await read(page, "faults/survived");
  expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
  expect(answer.headers["x-agarose-read"]).toBe("degraded");
  expect(await world.count(NEAR, "down")).toBeGreaterThan(0);
});

test("with one region more down, a read fails in good time with a typed error", async ({
  context,
  world,
  putRandom,
}) => {
  await putRandom("faults/lost", 1_000_000);
  await world.breakRegion(NEAR, { down: true });
  await world.breakRegion(NEXT, { down: true });
  const page = await openControlledApp(context, world);
  const answer = await read(page, "faults/lost");
  expect(answer.status).toBe(502);
  expect(answer.text).toContain("NOT_ENOUGH_CHUNKS");
  expect(answer.ms).toBeLessThan(5000);
  expect(await world.count(NEXT, "down")).toBeGreaterThan(0);
});

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

for (const fault of ["corrupt", "truncate"] as const) {
  test(`a bucket that answers 200 with ${fault === "corrupt" ? "wrong bytes" : "too few bytes"} is not believed`, async ({
    context,
    world,
    putRandom,
  }) => {
    const content = await putRandom(`faults/${fault}`, 5_000_000);
    const page = await openControlledApp(context, world);
    await world.breakRegion(NEAR, { [fault]: 1 });
    const answer = await read(page, `faults/${fault}`);
    expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
    expect(answer.headers["x-agarose-read"]).toBe("degraded");
    expect(await world.count(NEAR, fault === "corrupt" ? "corrupted" : "truncated")).toBeGreaterThan(0);
  });
}

test("a PoP that is down is replaced by another", async ({ context, world, putRandom }) => {
  const content = await putRandom("faults/pop", 1_000_000);
  await world.setPop("fra", { down: true });
  const page = await openControlledApp(context, world);
  expect(await read(page, "faults/pop")).toMatchObject({ status: 200, sha256: sha256(content) });
  expect(await world.count("fra", "down")).toBeGreaterThan(0);
  const log = await world.log();
  expect(log.some(({ to, path }) => to === "lhr" && path.startsWith("/v1/read/"))).toBe(true);
});

test("with every PoP down, the buckets alone serve", async ({ context, world, putRandom }) => {
  const content = await putRandom("faults/pops", 1_000_000);
  for (const { name } of world.pops) await world.setPop(name, { down: true });
  const page = await openControlledApp(context, world);
  const answer = await read(page, "faults/pops");
  expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
  for (const { name } of world.pops) expect(await world.count(name, "down")).toBeGreaterThan(0);
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
