/**
 * Where a period runs: at the PoP's place, wherever Cloudflare runs the handler of the Cron Trigger. A further isolate
 * of the PoP, with buckets of its own, plays that other machine.
 */
import { afterEach, beforeEach, expect, test } from "vitest";
import { startPops, type Pops } from "@agarose/dev-world/pops";
import { startBuckets, type BucketServer } from "../../test/bucket-server.ts";
import { ADMIN_TOKEN, POP, REGIONS, type Status } from "../../test/world.ts";

const ELSEWHERE = "elsewhere";

let near: BucketServer;
let far: BucketServer;
let pops: Pops;

beforeEach(async () => {
  near = await startBuckets();
  far = await startBuckets();
  pops = await startPops({
    pops: [
      { name: POP, vars: { REGIONS: regionsOf(near), ADMIN_TOKEN, UNSIGNED: "true" } },
      { name: ELSEWHERE, isolateOf: POP, vars: { REGIONS: regionsOf(far), ADMIN_TOKEN, UNSIGNED: "true" } },
    ],
  });
});
afterEach(async () => {
  await pops.dispose();
  await near.close();
  await far.close();
});

function regionsOf(buckets: BucketServer): string {
  return JSON.stringify(
    REGIONS.map((name) => ({ name, url: `http://public.invalid/${name}`, popUrl: `${buckets.url}/${name}` })),
  );
}

test("a Cron Trigger that fires in another city measures the regions from the PoP's place", async () => {
  const [, elsewhere] = pops.pops;
  const read = await fetch(`${elsewhere!.url}/o/no-such-object`);
  await read.body?.cancel();
  expect(far.requests.length, "the other machine reads from where it is").toBeGreaterThan(0);
  far.requests.length = 0;
  await pops.cron(ELSEWHERE);
  expect(far.requests).toEqual([]);
  expect(near.requests.length).toBeGreaterThan(0);
  const { regions } = await statusOf();
  expect(regions.map(({ name }) => name).toSorted()).toEqual(REGIONS.toSorted());
});

test("a Cron Trigger that fires where no bucket can be reached marks no region as down, and ends no read", async () => {
  await pops.cron();
  const before = await statusOf();
  await far.close();
  for (let i = 0; i < 3; i++) await pops.cron(ELSEWHERE);
  const after = await statusOf();
  expect(after.regions.filter(({ down, slow }) => down || slow)).toEqual([]);
  expect(after.epoch, "periods ran").toBeGreaterThan(before.epoch);
  expect(after.lastPeriod.errors).toEqual([]);
  far = await startBuckets();
});

async function statusOf(): Promise<Status> {
  const response = await fetch(`${pops.pops[0]!.url}/v1/status`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  return (await response.json()) as Status;
}
