/** The paid operations of reads and periods, from which docs/reference/request-costs.md computes costs. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { FLUSH_SECONDS, MONITOR_SHARDS, OPERATIONS } from "../scripts/operating-costs.ts";
import { takeCounts } from "./platform/counts.ts";
import type { InvocationReport } from "./platform/platform-limits.ts";
import { POP, putCached, randomBytes, readBundle, readObject, REGIONS, startWorld, type TestWorld } from "./world.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ MANIFEST_TTL_SECONDS: "600" }, { limited: true });
});
afterAll(() => world.close());

/** The operations of the last invocation for `what`; nothing counts twice. */
async function counted(what: string): Promise<InvocationReport> {
  const { invocations } = await takeCounts(world);
  return invocations.findLast((invocation) => invocation.what.startsWith(what))!;
}

test("the first bundle of a cached object costs one KV read a stripe and one of the configuration, the next one none", async () => {
  await putCached(world, "page", randomBytes(60_000));
  await counted("");
  const { plan } = await readBundle(`${world.url}/v1/read/page`, "page");
  expect(plan.cached).toHaveLength(4);
  const first = await counted("/v1/read/");
  expect(first.kvOperations).toBeGreaterThan(0);
  expect(first.kvOperations).toBeLessThanOrEqual(OPERATIONS.kvReadsFirst);
  await readBundle(`${world.url}/v1/read/page`, "page");
  expect((await counted("/v1/read/")).kvOperations).toBe(0);
});

test("a read of what is not cached costs no KV operation, and k + delta GETs besides that of the manifest", async () => {
  await world.put("cold", randomBytes(60_000, 3));
  world.buckets.requests.length = 0;
  await readObject(world, "cold");
  expect((await counted("/o/")).kvOperations).toBe(0);
  const chunks = world.buckets.requests.filter(({ name }) => name.startsWith("chunks/"));
  expect(chunks.length).toBeGreaterThanOrEqual(4);
  expect(chunks.length).toBeLessThanOrEqual(4 + 2);
});

test("a period costs two KV operations for each stripe that it fills, and at most two besides", async () => {
  await world.pops.cron(POP);
  const filling = await counted("period");
  const filled = (await world.status()).lastPeriod.written;
  expect(filled).toBeGreaterThan(0);
  const most = OPERATIONS.kvPerStripeFilled * filled + OPERATIONS.kvPeriodIdle;
  expect(filling.kvOperations).toBeGreaterThanOrEqual(OPERATIONS.kvPerStripeFilled * filled);
  expect(filling.kvOperations).toBeLessThanOrEqual(most);
});

test("a period that changes nothing costs the probes, a few calls of Durable Objects and at most two KV operations", async () => {
  for (let i = 0; i < 10 && (await world.status()).cache.objects.length > 0; i++) await world.pops.cron(POP);
  await world.pops.cron(POP);
  await counted("");
  await world.pops.cron(POP);
  const idle = await counted("period");
  expect((await world.status()).lastPeriod).toMatchObject({ written: 0, evicted: 0 });
  expect(idle.kvOperations).toBeLessThanOrEqual(OPERATIONS.kvPeriodIdle);
  const probes = OPERATIONS.probesPerRegion * REGIONS.length;
  const objectCalls = idle.subrequests - probes - idle.kvOperations - idle.cacheOperations;
  expect(objectCalls).toBeGreaterThan(0);
  expect(objectCalls).toBeLessThanOrEqual(OPERATIONS.objectCallsPeriodIdle);
});

/** So many that every shard has some. */
const KEYS = Array.from({ length: 16 }, (_, i) => `flushed/${i}`);

test("a flush calls each shard that has a key once, and the PoP's state at most once", async () => {
  for (const [i, key] of KEYS.entries()) await world.put(key, randomBytes(1_000, i));
  await takeCounts(world);
  const startMs = performance.now();
  await Promise.all(KEYS.map((key) => readBundle(`${world.url}/v1/read/${key}`, key)));
  const calls = { count: 0, report: 0 };
  const countCalls = async (): Promise<number> => {
    const { objectCalls } = await takeCounts(world);
    calls.report += objectCalls["PopState.report"] ?? 0;
    return (calls.count += objectCalls["RequestMonitor.count"] ?? 0);
  };
  await expect.poll(countCalls, { timeout: 60_000 }).toBeGreaterThanOrEqual(MONITOR_SHARDS);
  // On a slow machine the reads may take longer than it takes to the next flush.
  const flushes = 1 + Math.floor((performance.now() - startMs) / (1_000 * FLUSH_SECONDS));
  expect(calls.count).toBeLessThanOrEqual(MONITOR_SHARDS * flushes);
  expect(calls.report).toBeLessThanOrEqual(flushes);
});

/** The cost of the period that runs now, with the handler of the Cron Trigger. */
async function period(): Promise<{ calls: number; rows: number; filled: number }> {
  await takeCounts(world);
  await world.pops.cron(POP);
  const { objectCalls, rowsWritten } = await takeCounts(world);
  const calls = Object.values(objectCalls).reduce((sum, count) => sum + count, 0);
  const { written } = (await world.status()).lastPeriod;
  return { calls, rows: rowsWritten, filled: written };
}

test("a period that fills writes few rows and calls few objects: as many as the costs are computed from", async () => {
  for (let i = 0; i < 8; i++) {
    await world.put(`filled/${i}`, randomBytes(60_000, i));
    await readObject(world, `filled/${i}`);
  }
  const { calls, rows, filled } = await period();
  expect(filled).toBeGreaterThanOrEqual(8);
  expect(rows).toBeGreaterThan(0);
  expect(rows, `for ${filled} stripes`).toBeLessThanOrEqual(
    OPERATIONS.rowsPeriod + OPERATIONS.rowsPerStripeFilled * filled,
  );
  expect(calls).toBeLessThanOrEqual(OPERATIONS.objectCallsPeriodIdle + OPERATIONS.objectCallsFilling);
});

test("a period that changes nothing writes the rows that the costs are computed from", async () => {
  let idle = await period();
  for (let i = 0; i < 10 && idle.filled > 0; i++) idle = await period();
  expect(idle.rows).toBeGreaterThan(0);
  expect(idle.rows).toBeLessThanOrEqual(OPERATIONS.rowsPeriod);
  expect(idle.calls).toBeLessThanOrEqual(OPERATIONS.objectCallsPeriodIdle);
});

test("an exchange writes few rows and calls few objects: as many as the costs are computed from", async () => {
  await world.close();
  world = await startWorld({ EXCHANGE_SECONDS: "1" }, { limited: true });
  await world.put("page", randomBytes(60_000));
  const sum = { calls: 0, rows: 0, exchanges: 0 };
  const add = async (): Promise<number> => {
    // Something is asked for in each of them.
    await readBundle(`${world.url}/v1/read/page`, "page");
    const { objectCalls, rowsWritten } = await takeCounts(world);
    for (const call of ["RequestMonitor.count", "PopState.recordUse", "PopState.observe"]) delete objectCalls[call];
    sum.calls += Object.values(objectCalls).reduce((all, count) => all + count, 0);
    sum.rows += rowsWritten;
    return (sum.exchanges += (objectCalls["RequestMonitor.exchange"] ?? 0) / MONITOR_SHARDS);
  };
  await expect.poll(add, { timeout: 60_000, interval: 500 }).toBeGreaterThanOrEqual(2);
  // The first ones probe the regions and make the tables.
  sum.calls = sum.rows = sum.exchanges = 0;
  await expect.poll(add, { timeout: 60_000, interval: 500 }).toBeGreaterThanOrEqual(3);
  // The alarm is a call, too.
  expect(sum.calls / sum.exchanges + 1).toBeLessThanOrEqual(OPERATIONS.objectCallsExchange);
  expect(sum.rows / sum.exchanges).toBeLessThanOrEqual(OPERATIONS.rowsExchange);
});
