import { AgaroseError, systemClock, systemSha256, type FetchPort } from "@agarose/core";
import { concat } from "@agarose/core/format";
import { javascriptCodec } from "@agarose/ec-wasm";
import { expect, test } from "vitest";
import { memoryBuckets, putObject, randomBytes, REGIONS } from "../../test/objects.ts";
import { Budget } from "../runtime/budget.ts";
import { runPeriod } from "./period.ts";
import type { PeriodContext, StatePort } from "./period-context.ts";
import { ChunkCache, type CacheContext } from "../read/chunk-cache.ts";
import { CONFIGURATION_NAME, parseConfiguration, type Configuration } from "./configuration.ts";
import { Connections } from "../runtime/connections.ts";
import { FetchedStripes } from "../read/fetched-stripes.ts";
import { FrontCache } from "../read/front-cache.ts";
import type { LedgerEntry, PeriodReport } from "./ledger.ts";
import { mergeRegion, type RegionState } from "../regions/region-estimates.ts";
import { PlannerKeeper } from "./planner-keeper.ts";
import { addEgress, addSpending, type FillEgress, type Spending } from "./spending.ts";
import type { SpendingSettings } from "./write-budget.ts";

/** The state of `PopState`, in memory. */
class MemoryState implements StatePort {
  readonly ledger = new Map<string, LedgerEntry>();
  regions: RegionState[] = [];
  epoch = 0;
  lastPeriod: PeriodReport | undefined;

  plan: Uint8Array | undefined;
  spending: Spending | undefined;
  fillEgress: FillEgress | undefined;

  async beginPeriod() {
    const { epoch, regions, lastPeriod, spending, fillEgress } = this;
    return {
      epoch,
      ledger: [...this.ledger.values()],
      regions,
      lastPeriod,
      spending,
      fillEgress,
      behind: [],
      cacheLatency: {},
    };
  }
  async loadPlan() {
    return this.plan;
  }
  async savePlan(plan: Iterable<Uint8Array>) {
    this.plan = concat([...plan]);
  }
  async spend(spending: Spending, egress?: FillEgress) {
    this.spending = addSpending(this.spending, spending);
    if (egress) this.fillEgress = addEgress(this.fillEgress, egress);
  }
  async mergeProbes(probes: Parameters<StatePort["mergeProbes"]>[0]) {
    this.regions = probes.map((probe) =>
      mergeRegion(
        this.regions.find(({ name }) => name === probe.region),
        probe,
        [],
      ),
    );
    return { regions: this.regions, cacheLatency: {} };
  }
  async record(entries: readonly LedgerEntry[]) {
    for (const entry of entries) this.ledger.set(entry.version, entry);
  }
  async remove(versions: readonly string[]) {
    for (const version of versions) this.ledger.delete(version);
  }
  async nextEpoch() {
    return ++this.epoch;
  }
  async endLease() {}
  async endPeriod(report: PeriodReport) {
    this.lastPeriod = report;
  }
}

/** A KV namespace in memory. */
class MemoryKv {
  readonly values = new Map<string, ArrayBuffer | string>();
  writes = 0;

  /** As one invocation sees it, which is killed at the write after `writesMax`: no operation of it ends after that. */
  view(writesMax = Number.POSITIVE_INFINITY): { namespace: KVNamespace; killed: Promise<void> } {
    const { promise: killed, resolve: kill } = Promise.withResolvers<void>();
    let isDead = false;
    const alive = async (): Promise<void> => {
      if (isDead) await new Promise(() => {});
    };
    const namespace = {
      get: async (name: string) => {
        await alive();
        return this.values.get(name) ?? null;
      },
      put: async (name: string, value: ArrayBuffer | string) => {
        if (this.writes >= writesMax) isDead = true;
        if (isDead) kill();
        await alive();
        this.writes++;
        this.values.set(name, value);
      },
      delete: async (name: string) => {
        await alive();
        this.values.delete(name);
      },
    };
    return { namespace: namespace as unknown as KVNamespace, killed };
  }
}

const noCache = (): Cache => {
  throw new Error("no Cache API here");
};

const frontCache = new FrontCache({ pop: "fra", host: () => "fra.example" }, systemClock, noCache);

const contextOf = (kv: KVNamespace): CacheContext => ({
  kv,
  connections: new Connections(),
  waitUntil: () => {},
  spend: () => true,
  onSuspect: () => {},
  onTimed: () => {},
});

const failing = async (): Promise<never> => {
  throw new AgaroseError("INTERNAL", "the shard is overloaded");
};

async function setUp(stripes: number) {
  const buckets = memoryBuckets();
  const manifest = await putObject(buckets, "x", randomBytes(stripes * 4096), { stripeBytes: 4096 });
  const state = new MemoryState();
  const kv = new MemoryKv();
  const published: Configuration[] = [];
  const fetchWithin =
    (budget: Budget): FetchPort =>
    async (url, { headers }) => {
      budget.spend();
      // Far enough that the edge is worth something.
      await new Promise((resolve) => setTimeout(resolve, 10));
      return buckets.respond(url, headers);
    };
  const options = (namespace = kv.view().namespace, budget = new Budget()): PeriodContext => ({
    settings: {
      pop: "fra",
      regions: REGIONS.map((name) => ({ name, url: `http://b/${name}`, popUrl: `http://b/${name}` })),
      cacheBytes: 1e9,
      policy: "exact",
      knownObjects: 16,
      exchangeSeconds: 0,
      spending: { writeUsdPerMillion: 5, readUsdPerMillion: 0.5, usdPerPeriod: Infinity, usdPerMonth: Infinity },
      fillEgressBytesPerDay: 1e9,
      storageUsdPerGbMonth: 0.5,
      waitingUsdPerHour: 1,
      delta: 1,
      functional: false,
      recovered: true,
    },
    state,
    planners: new PlannerKeeper(),
    requests: {
      closePeriod: async () => [{ key: "x", requests: 1, popularity: 1, mayFill: true }],
      forgetKeys: async () => {},
      mayLookUp: () => true,
      findManifest: async () => manifest,
    },
    cache: {
      chunks: new ChunkCache(frontCache, systemClock, 0),
      kv: contextOf(namespace),
      fetched: new FetchedStripes(frontCache, systemClock, Date.now, false),
      onPublished: (configuration) => void published.push(configuration),
    },
    system: {
      fetch: fetchWithin(budget),
      budget,
      clock: systemClock,
      now: Date.now,
      sha256: systemSha256,
      codec: async () => javascriptCodec(),
    },
    turn: { mayChange: true },
  });
  const stripesInKv = (): number => [...kv.values.keys()].filter((name) => name.startsWith("chunks:")).length;
  return { buckets, manifest, state, kv, published, options, stripesInKv };
}

test("a period that is killed in the middle promises nothing, and the next one continues from what it noted", async () => {
  const { kv, state, manifest, published, options, stripesInKv } = await setUp(120);
  const { namespace, killed } = kv.view(70);
  void runPeriod(options(namespace));
  await killed;
  // Whatever the killed period would do after this does not happen.
  expect(stripesInKv()).toBe(70);
  expect(published).toEqual([]);
  expect(state.ledger.get(manifest.version)).toMatchObject({ chunks: [], stripes: 120 });
  const { done } = state.ledger.get(manifest.version)!;
  expect(done).toBeGreaterThanOrEqual(40);
  const report = await runPeriod(options());
  expect(report).toMatchObject({ left: 0, errors: [] });
  expect(report!.written, "what was written already is only checked").toBe(50);
  expect(published.at(-1)!.cached.get(manifest.version)!.chunks).toHaveLength(4);
});

test("a period ends within its budget, and several of them finish the work", async () => {
  const { options, stripesInKv, state, manifest } = await setUp(40);
  const reports: PeriodReport[] = [];
  expect(new Budget().allows(1_000)).toBe(true);
  expect(new Budget().allows(1_001)).toBe(false);
  for (let i = 0; i < 9; i++) reports.push((await runPeriod(options(undefined, new Budget(120))))!);
  for (const { operations } of reports) expect(operations).toBeLessThanOrEqual(120);
  expect(reports[0]!.left).toBeGreaterThan(0);
  const written = reports.reduce((sum, report) => sum + report.written, 0);
  expect(written, "no stripe is written twice").toBe(40);
  expect(stripesInKv()).toBe(40);
  expect(state.ledger.get(manifest.version)!.done).toBe(40);
});

test("a period that has waited for its turn has so much less time to fill, and the next one finishes the work", async () => {
  const { options, stripesInKv } = await setUp(5);
  const late = await runPeriod({ ...options(), turn: { mayChange: true, waitedMs: 45_000 } });
  expect(late).toMatchObject({ written: 0, errors: [] });
  expect(late!.left).toBeGreaterThan(0);
  expect(await runPeriod({ ...options(), turn: { mayChange: true, waitedMs: 1_000 } })).toMatchObject({ written: 5 });
  expect(stripesInKv()).toBe(5);
});

test("a period begins no look-up in its second half, and fills what it has found", async () => {
  const { options, manifest, stripesInKv } = await setUp(1);
  const { system, requests, ...rest } = options();
  let ms = 0;
  let lookUps = 0;
  const findManifest = async (key: string): Promise<typeof manifest> => {
    lookUps++;
    ms += 2_000;
    if (key !== "x") throw new AgaroseError("SOURCE_FAILED", "down");
    return manifest;
  };
  const named = (key: string) => ({ key, requests: 1, popularity: 1, mayFill: true });
  const keys = [named("x"), ...Array.from({ length: 99 }, (_, number) => named(`other-${number}`))];
  const clock = { ...systemClock, now: () => systemClock.now() + ms };
  const report = await runPeriod({
    ...rest,
    settings: { ...rest.settings, knownObjects: 200 },
    system: { ...system, clock },
    requests: { ...requests, closePeriod: async () => keys, findManifest },
  });
  expect(lookUps).toBeGreaterThanOrEqual(12);
  expect(lookUps, "twelve, and those that begin at the same moment").toBeLessThanOrEqual(18);
  expect(report).toMatchObject({ written: 1 });
  expect(stripesInKv()).toBe(1);
});

test("the budget holds in the worst case too: regions that fail are asked, and then the others instead", async () => {
  const { buckets, options, manifest } = await setUp(40);
  const bucketNames = [...buckets.objects.keys()].filter((name) => /^r[01]\/chunks/.test(name));
  expect(bucketNames).toHaveLength(2);
  for (const name of bucketNames) buckets.objects.set(name, new Uint8Array(1));
  const report = (await runPeriod(options(undefined, new Budget(120))))!;
  expect(report.reconstructed).toBeGreaterThan(0);
  expect(report.operations).toBeLessThanOrEqual(120);
  expect(manifest.placement.slice(0, 2)).toEqual(["r0", "r1"]);
});

const USD_PER_WRITE = 5.5e-6;
const budgeted = (options: PeriodContext, changes: Partial<SpendingSettings>): PeriodContext => {
  const { settings } = options;
  return { ...options, settings: { ...settings, spending: { ...settings.spending, ...changes } } };
};

test("a period ends within its budget in money, and several of them finish the work", async () => {
  const { options, stripesInKv, state, manifest, kv } = await setUp(40);
  const usdPerPeriod = 14 * USD_PER_WRITE;
  const reports: PeriodReport[] = [];
  for (let i = 0; i < 5; i++) {
    const before = state.spending?.usd ?? 0;
    reports.push((await runPeriod(budgeted(options(), { usdPerPeriod })))!);
    expect(state.spending!.usd - before).toBeLessThanOrEqual(usdPerPeriod);
    expect(state.spending!.usd - before).toBeCloseTo(reports.at(-1)!.usd, 12);
  }
  expect(reports[0]!.written).toBeGreaterThan(0);
  expect(reports[0]!.left).toBeGreaterThan(0);
  expect(stripesInKv()).toBe(40);
  expect(state.ledger.get(manifest.version)!.done).toBe(40);
  expect(state.spending!.writes, "as many as KV has seen").toBe(kv.writes);
});

test("when the month's money is spent, what is cached serves on, and everything else waits for the next month", async () => {
  const { options, stripesInKv, published, state } = await setUp(4);
  let nowMs = Date.UTC(2026, 10, 30);
  const period = (key: string) => {
    const { system, requests, ...rest } = options();
    const closePeriod = async () => [{ key, requests: 1, popularity: 1, mayFill: true }];
    const context = { ...rest, system: { ...system, now: () => nowMs }, requests: { ...requests, closePeriod } };
    return runPeriod(budgeted(context, { usdPerMonth: 2 * USD_PER_WRITE }));
  };
  expect(await period("x")).toMatchObject({ written: 1 });
  const report = await period("x");
  expect(report).toMatchObject({ written: 0, waiting: 3, errors: [] });
  expect(published.at(-1)!.epoch, "configurations are published whatever it costs").toBe(2);
  nowMs = Date.UTC(2026, 11, 1);
  expect(await period("x")).toMatchObject({ written: 1 });
  expect(state.spending!.month).toBe("2026-12");
  expect(stripesInKv()).toBe(2);
});

test("of a period that is killed the books have what it spent at least", async () => {
  const { kv, state, options } = await setUp(40);
  const { namespace, killed } = kv.view(20);
  void runPeriod(options(namespace));
  await killed;
  expect(kv.writes).toBe(20);
  expect(state.spending!.writes).toBeGreaterThanOrEqual(20);
});

test("the request monitor's failure leaves the cache as it is and the regions' estimates up to date", async () => {
  const { options, published, manifest } = await setUp(2);
  await runPeriod(options());
  const { requests, ...rest } = options();
  const report = await runPeriod({ ...rest, requests: { ...requests, closePeriod: failing } });
  expect(report!.errors).toEqual(["INTERNAL: the shard is overloaded"]);
  expect(published.at(-1)!.epoch).toBe(2);
  expect([...published.at(-1)!.cached.keys()]).toEqual([manifest.version]);
});

test("what is published is what KV then says", async () => {
  const { options, published, kv } = await setUp(2);
  await runPeriod(options());
  expect(parseConfiguration(kv.values.get(CONFIGURATION_NAME) as string)).toEqual(published[0]);
});
