/** One system of the benchmark `policies`, for real: a local world with its PoPs, and a page beside each of them. */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContext, Page } from "@playwright/test";
import type { Scenario } from "@agarose/solver/simulator";
import type { Trace } from "@agarose/solver/traces";
import { LocalWorld } from "@agarose/dev-world/client";
import { Reads } from "@agarose/dev-world/playwright";
import { openApp, takeServiceWorker } from "../../fixtures/app.ts";

/** Of some reads, in milliseconds. */
export interface Times {
  readonly meanMs: number;
  readonly p99Ms: number;
}

export type SystemSpec = Scenario["systems"][number];

export const SCENARIO = fileURLToPath(import.meta.resolve("@agarose/solver/scenarios/three-pops.json"));
const PROBE_PERIODS = 5;
/** Of the latency of a region while objects are stored. */
const NEAR_FACTOR = 0.05;
const ADMIN = { authorization: "Bearer agarose-dev-admin-token" };

/** Times of the reads of one system. */
export interface Outcome extends Times {
  /** Without the reads of the first period, in which no cache holds anything. */
  readonly warm: Times;
  /** Chunks that a read asked for, cached ones included. */
  readonly requestsPerRead: number;
  /** Bytes that fills of the caches fetched for each byte that they filled; undefined where nothing was filled. */
  readonly fetchedPerFilled: number | undefined;
}

/** Options of a run. */
export interface RunOptions {
  readonly browser: Browser;
  readonly scenario: Scenario;
  readonly system: SystemSpec;
  readonly trace: Trace;
  readonly progress: (line: string) => void;
}

/** Plays the trace once. Rejects when a read fails. */
export async function runForReal({ browser, scenario, system, trace, progress }: RunOptions): Promise<Outcome> {
  const world = await LocalWorld.start({ geography: SCENARIO, lineMbit: 0, variables: popVariables(system) });
  const contexts: BrowserContext[] = [];
  try {
    await putObjects(world, trace);
    const pages = new Map<string, Page>();
    const collected: Reads[] = [];
    for (const { name } of world.pops) {
      await world.client.near(name);
      const context = await browser.newContext();
      contexts.push(context);
      collected.push(await Reads.collect(context, world));
      const page = await openApp(context, world);
      // A client of this PoP: that clients find the nearest one is measured elsewhere. What its peers hold, it asks of
      // them.
      const peers = system.joint ? world.pops.filter((pop) => pop.name !== name) : [];
      await takeServiceWorker(page, { pops: [name, ...peers.map((pop) => pop.name)], regions: [] });
      pages.set(name, page);
    }
    // A PoP that has been there for a while knows its regions, as the simulated one does.
    for (let probe = 0; probe < PROBE_PERIODS; probe++) await world.cron();
    const times: number[] = [];
    let cold = 0;
    const fills = { fetched: 0, filled: 0 };
    let near: string | undefined;
    for (const [period, reads] of inBatches(trace, scenario).entries()) {
      if (period > 0) await closePeriod(world, fills);
      if (period === 1) cold = times.length;
      const startMs = performance.now();
      for (const [i, read] of reads.entries()) {
        await untilMs(startMs + (i / reads.length) * 1_000 * scenario.periodSeconds);
        const pop = trace.pops[trace.pop[read]!]!;
        if (pop !== near) await world.client.near((near = pop));
        const object = trace.object[read]!;
        times.push(await timedRead(pages.get(pop)!, trace.keys[object]!, trace.bytes[object]!));
      }
    }
    await closePeriod(world, fills);
    const reads = (await Promise.all(collected.map((own) => own.all()))).flat();
    if (reads.length !== times.length) throw new Error(`${reads.length} of ${times.length} reads were reported`);
    const outcome = {
      ...timesOf(times),
      warm: timesOf(times.slice(cold)),
      requestsPerRead: reads.reduce((sum, { requests }) => sum + requests.length, 0) / reads.length,
      fetchedPerFilled: fills.filled > 0 ? fills.fetched / fills.filled : undefined,
    };
    progress(`${system.name}: mean ${outcome.meanMs.toFixed(0)}, p99 ${outcome.p99Ms.toFixed(0)} ms`);
    return outcome;
  } finally {
    for (const context of contexts) await context.close();
    await world.stop();
  }
}

function timesOf(reads: readonly number[]): Times {
  const sorted = reads.toSorted((a, b) => a - b);
  return {
    meanMs: sorted.reduce((sum, ms) => sum + ms, 0) / sorted.length,
    p99Ms: sorted[Math.floor(0.99 * (sorted.length - 1))]!,
  };
}

/**
 * How long the reads of `trace` take on average in the same places without noise and caches, where nothing but
 * distance, bytes and the work of this machine decides.
 */
export async function runWithoutNoise(browser: Browser, trace: Trace): Promise<number> {
  const { noise: _, ...geography } = JSON.parse(await readFile(SCENARIO, "utf8")) as Pick<Scenario, "noise">;
  const world = await LocalWorld.start({ geography, lineMbit: 0, variables: { POLICY: "off" } });
  const context = await browser.newContext();
  try {
    await putObjects(world, trace);
    const pop = trace.pops[trace.pop[0]!]!;
    await world.client.near(pop);
    const page = await openApp(context, world);
    await takeServiceWorker(page, { pops: [pop], regions: [] });
    for (let probe = 0; probe < PROBE_PERIODS; probe++) await world.cron();
    const times: number[] = [];
    for (const object of trace.object) times.push(await timedRead(page, trace.keys[object]!, trace.bytes[object]!));
    return timesOf(times).meanMs;
  } finally {
    await context.close();
    await world.stop();
  }
}

/** The system as variables of real PoPs: none for what PoPs do by default. */
function popVariables({ policy, read, joint }: SystemSpec): Record<string, string> {
  return {
    ...(policy !== "adaptive" && { POLICY: policy === "backend" ? "off" : policy }),
    ...(read.delta !== 1 && { DELTA: String(read.delta) }),
    ...(read.cachedChunks !== "functional" && { FUNCTIONAL: "false" }),
    ...(!joint && { PEERS: "[]" }),
  };
}

/** Fires the Cron Trigger of all PoPs, and adds up what their fills fetched. */
async function closePeriod(world: LocalWorld, fills: { fetched: number; filled: number }): Promise<void> {
  await world.cron();
  for (const { url } of world.pops) {
    const { lastPeriod } = (await (await fetch(`${url}/v1/status`, { headers: ADMIN })).json()) as {
      readonly lastPeriod?: { readonly fetchedBytes?: number; readonly filledBytes?: number };
    };
    fills.fetched += lastPeriod?.fetchedBytes ?? 0;
    fills.filled += lastPeriod?.filledBytes ?? 0;
  }
}

/**
 * The trace's reads by period, those of each period PoP by PoP, another one first each time: the world has one client,
 * which moves from one to the next, and a page that measured its way while the client is elsewhere would choose the
 * wrong PoP. What a period counts stays the same.
 */
function inBatches(trace: Trace, { pops, periodSeconds }: Scenario): number[][] {
  const periods = Map.groupBy(trace.object.keys(), (read) => Math.floor(trace.seconds[read]! / periodSeconds));
  return [...periods].map(([period, reads]) => {
    const batch = (read: number): number =>
      (pops.findIndex(({ name }) => name === trace.pops[trace.pop[read]!]) + period) % pops.length;
    return reads.toSorted((a, b) => batch(a) - batch(b) || a - b);
  });
}

async function untilMs(ms: number): Promise<void> {
  const waitMs = ms - performance.now();
  if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
}

/** While regions are near: an object that a late region was left out of would be another one in this world. */
async function putObjects(world: LocalWorld, trace: Trace): Promise<void> {
  for (const { name } of world.regions) {
    await world.region(name).slow(NEAR_FACTOR);
    await world.region(name).straggle(0, 1);
  }
  for (const [i, key] of trace.keys.entries()) await world.put(key, randomBytes(trace.bytes[i]!));
  await world.agarose("verify", "--quick", "--prefix", "objects/");
  await world.reset();
}

async function timedRead(page: Page, key: string, bytes: number): Promise<number> {
  const answer = await page.evaluate(async (path) => {
    const start = performance.now();
    const response = await fetch(path, { cache: "no-store" });
    const body = await response.arrayBuffer();
    const ms = performance.now() - start;
    const { status, ok } = response;
    return { ms, byteLength: body.byteLength, status, text: ok ? "" : new TextDecoder().decode(body) };
  }, `/ec/${key}`);
  if (answer.byteLength === bytes) return answer.ms;
  throw new Error(`${key}: status ${answer.status}, ${answer.byteLength} of ${bytes} bytes ${answer.text}`);
}
