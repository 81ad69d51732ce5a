import { chunkName } from "@agarose/core/format";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseExposition, type Metric } from "../../../test/prometheus.ts";
import {
  ADMIN_TOKEN,
  POP,
  putCached,
  randomBytes,
  readFromCache,
  readObject,
  REGIONS,
  startWorld,
  type TestWorld,
} from "../../../test/world.ts";
import { METRICS } from "../metric-catalogue.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ PRIVATE_PREFIXES: '["members/"]' });
});
afterAll(() => world.close());

async function metrics(): Promise<Map<string, Metric>> {
  const response = await fetch(`${world.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  return parseExposition(await response.text());
}

/** The value of the series of these labels beside that of the PoP; 0 where there is none. */
function valueOf(all: Map<string, Metric>, name: string, labels: Record<string, string> = {}): number {
  const metric = all.get(name);
  if (!metric) throw new Error(`${name} is not there`);
  const wanted = { pop: POP, ...labels };
  return metric.samples.find((sample) => JSON.stringify(sample.labels) === JSON.stringify(wanted))?.value ?? 0;
}

/** The regions that were asked for chunks of a key, the most asked ones first. */
function chunkRequests(key: string): string[] {
  const chunks = world.buckets.requests.filter(({ name }) => name.startsWith(`chunks/${key}!`));
  const countOf = (region: string): number => chunks.filter((request) => request.region === region).length;
  return REGIONS.filter((region) => countOf(region) > 0).toSorted((a, b) => countOf(b) - countOf(a));
}

test("/metrics is sound before anything has happened", async () => {
  const all = await metrics();
  expect(all.size).toBeGreaterThanOrEqual(16);
  expect(valueOf(all, "agarose_configuration_epoch")).toBe(0);
});

test("/metrics counts requests, refusals, kinds of reads, requests to buckets, shared stripes and breakers", async () => {
  const content = randomBytes(100_000);
  await putCached(world, "page", content);
  await readFromCache(world, "page", content);
  await fetch(`${world.url}/o/nothing`);
  await fetch(`${world.url}/o/members/a`);
  await fetch(`${world.url}/elsewhere/"\\`);
  // Which regions are the nearest ones is chance.
  await world.put("nearest", randomBytes(400_000, 2), { stripeBytes: 20_000 });
  await readObject(world, "nearest");
  const [down, up] = chunkRequests("nearest");
  world.buckets.faults.set(down!, { down: true });
  await world.put("striped", randomBytes(400_000, 2), { stripeBytes: 20_000 });
  for (let i = 0; i < 20 && !(await world.status()).isolate.openBreakers.includes(down!); i++)
    await readObject(world, "striped");
  world.buckets.faults.clear();
  expect(world.buckets.fired.get(down!)).toBeGreaterThanOrEqual(5);
  const all = await metrics();
  const count = (name: string, labels: Record<string, string>): number =>
    valueOf(all, `agarose_isolate_${name}_total`, labels);
  expect(count("requests", { route: "/o/", status: "200" })).toBeGreaterThanOrEqual(3);
  expect(count("requests", { route: "/o/", status: "404" })).toBe(1);
  expect(count("requests", { route: "/o/", status: "403" })).toBe(1);
  expect(count("requests", { route: "other", status: "404" })).toBe(1);
  // Its three series have the labels of the route, and those of the classes `le` besides.
  const durations = all.get("agarose_isolate_request_duration_seconds")!.samples;
  const ofOther = durations.filter(({ labels }) => labels["route"] === "other");
  const classes = ofOther.filter(({ labels }) => labels["le"] !== undefined).map(({ value }) => value);
  expect(classes, "cumulative").toEqual(classes.toSorted((a, b) => a - b));
  expect(classes.at(-1)).toBe(1);
  expect(ofOther.filter(({ labels }) => labels["le"] === undefined)).toHaveLength(2);
  expect(count("errors", { code: "OBJECT_NOT_FOUND" })).toBe(1);
  expect(count("errors", { code: "FORBIDDEN" })).toBe(1);
  expect(count("reads", { kind: "origin" })).toBeGreaterThanOrEqual(1);
  expect(count("reads", { kind: "edge" })).toBeGreaterThanOrEqual(1);
  expect(count("reads", { kind: "degraded" })).toBeGreaterThanOrEqual(1);
  expect(count("bucket_requests", { region: down!, outcome: "failed" })).toBeGreaterThanOrEqual(5);
  expect(count("bucket_requests", { region: up!, outcome: "used" })).toBeGreaterThanOrEqual(1);
  const loads = REGIONS.map((region) =>
    all
      .get("agarose_isolate_bucket_requests_total")!
      .samples.filter(({ labels }) => labels["region"] === region)
      .reduce((sum, { value }) => sum + value, 0),
  );
  const mean = loads.reduce((sum, load) => sum + load, 0) / loads.length;
  const imbalance = valueOf(all, "agarose_isolate_region_imbalance_ratio");
  expect(imbalance).toBeCloseTo(Math.max(...loads) / mean - 1, 6);
  expect(imbalance).toBeGreaterThan(0);
  expect((await world.status()).isolate.regionImbalancePercent).toBeCloseTo(100 * imbalance, 6);
  expect(count("stripes_decoded", { by: "own" })).toBeGreaterThanOrEqual(2 + 2 + 20);
  expect(valueOf(all, "agarose_isolate_breaker_open", { region: down! })).toBe(1);
  expect(valueOf(all, "agarose_isolate_breaker_open", { region: up! })).toBe(0);
  expect(valueOf(all, "agarose_cache_objects")).toBe(1);
  expect(valueOf(all, "agarose_period_stripes", { change: "written" })).toBe(2);
  expect(valueOf(all, "agarose_spending_month_operations", { operation: "write" })).toBe(3);
  expect(valueOf(all, "agarose_spending_month_usd")).toBeCloseTo(3 * 5e-6 + 2 * 0.5e-6, 9);
  expect(valueOf(all, "agarose_region_down", { region: down! })).toBe(0);
  // Only a PoP on Node is a process, and only one at Cloudflare has a limit of money by default.
  const ofSome = ["process_resident_memory_bytes", "process_cpu_seconds_total", "agarose_spending_month_max_usd"];
  expect(new Set([...all.keys(), ...ofSome])).toEqual(new Set(Object.keys(METRICS)));
});

/** How many series there are. */
const series = async (): Promise<number> =>
  [...(await metrics()).values()].reduce((sum, { samples }) => sum + samples.length, 0);

test("/metrics has no series for keys, however many there are", async () => {
  await fetch(`${world.url}/o/one`);
  const before = await series();
  for (let i = 0; i < 20; i++) await fetch(`${world.url}/o/nothing-${i}`);
  expect(await series()).toBe(before);
});

test("logs are JSON, a line each, with an event: periods, and reads that were cut off with key and code", async () => {
  const { upload, version } = await world.put("broken", randomBytes(900_000, 3));
  for (const chunk of [0, 1, 2]) {
    const name = `${REGIONS[chunk]}/${chunkName("broken", upload, chunk)}`;
    world.buckets.objects.set(name, world.buckets.objects.get(name)!.subarray(0, 200_000));
  }
  await expect(readObject(world, "broken")).rejects.toThrow();
  await world.pops.cron(POP);
  const linesOf = (): Record<string, unknown>[] =>
    world.logs
      .join("")
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  for (let i = 0; i < 50 && !linesOf().some(({ event }) => event === "read cut off"); i++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const lines = linesOf();
  for (const line of lines) expect(line).toMatchObject({ level: expect.any(String), event: expect.any(String) });
  expect(lines.find(({ event }) => event === "period")).toMatchObject({
    level: "info",
    pop: POP,
    epoch: 1,
    errors: [],
  });
  const cut = lines.find(({ event }) => event === "read cut off");
  expect(cut).toMatchObject({ level: "warn", key: "broken", version, code: "NOT_ENOUGH_CHUNKS" });
});
