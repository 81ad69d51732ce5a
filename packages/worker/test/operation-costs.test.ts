/** How many paid operations reads and periods take: what the costs in docs/guides/deploy.md are computed from. */
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { costTable, OPERATIONS } from "../scripts/operating-costs.ts";
import type { InvocationReport } from "./platform-limits.ts";
import { POP, putCached, randomBytes, readBundle, readObject, REGIONS, startWorld, type TestWorld } from "./world.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ MANIFEST_TTL_SECONDS: "600", TELEMETRY_KEY: "telemetry-key-of-tests" }, { limited: true });
});
afterAll(() => world.close());

/** What the last invocation for `what` did; nothing counts twice. */
async function counted(what: string): Promise<InvocationReport> {
  const { invocations } = (await (await fetch(`${world.url}/__limits`)).json()) as { invocations: InvocationReport[] };
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

test("the documentation has the table that the script computes", async () => {
  const text = await readFile(new URL("../../../docs/guides/deploy.md", import.meta.url), "utf8");
  const cells = (markdown: string): string[] =>
    markdown
      .split("\n")
      .filter((line) => line.startsWith("|") && !/^\|[\s|:-]+$/.test(line))
      .map((line) => line.replace(/\s+/g, " "));
  for (const row of cells(costTable())) expect(cells(text)).toContain(row);
});
