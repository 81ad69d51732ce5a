/**
 * Agarose against what else one could do with the same caches: whole copies behind a CDN, and striping without parity. Real
 * reads in Chromium over the emulated WAN, contestants taking turns read by read.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "@playwright/test";
import { geographyOf, TABLE_I, type Geography } from "../../packages/cli/src/dev/geography.ts";
import { loadScenario } from "../../packages/cli/src/scenario-file.ts";
import { seededRandom } from "../../packages/solver/src/random.ts";
import { openControlledApp } from "../fixtures/app.ts";
import { World } from "../fixtures/world.ts";
import type { Bench, BenchOptions } from "./bench.ts";
import { startBrowser } from "./browser.ts";
import { startCdn, type Cdn } from "./cdn.ts";
import { describeMachine } from "./machine.ts";
import { putWhole } from "./sdk-put.ts";
import { table } from "./statistics.ts";

interface Layout {
  readonly name: string;
  readonly title: string;
  readonly geography: () => Promise<Geography>;
  /** For the world. */
  readonly args: readonly string[];
  readonly scale: number;
  readonly jitterSigma: number;
  readonly mbitPerSecond: number;
  /** Parity-free contestant: stripes over the k nearest regions. */
  readonly k: number;
  readonly objects: number;
  /** Reads of each phase at each PoP, and before the first one. */
  readonly reads: number;
}

const CONTINENTAL = fileURLToPath(new URL("../../packages/solver/scenarios/continental.json", import.meta.url));
const LAYOUTS: Readonly<Record<"continental" | "table-i", Layout>> = {
  continental: {
    name: "continental",
    title: "six providers of one continent, RS(4,2), against whole copies behind a CDN",
    geography: async () => geographyOf(await loadScenario(CONTINENTAL)),
    args: ["--scenario", CONTINENTAL],
    scale: 1,
    jitterSigma: 0.4,
    mbitPerSecond: 200,
    k: 4,
    objects: 200,
    reads: 300,
  },
  "table-i": {
    name: "table-i",
    title: "six regions of the whole world, RS(9,3), against whole copies behind a CDN",
    geography: async () => TABLE_I,
    args: ["--scale", "0.25", "--jitter", "0.4"],
    scale: 0.25,
    jitterSigma: 0.4,
    mbitPerSecond: 200,
    k: 9,
    objects: 100,
    reads: 60,
  },
};

const SIZES = { min: 100_000, max: 8_000_000 };
const SMALL = 1_000_000;
const LARGE = 4_000_000;
/** Share of all object bytes that each PoP may cache: as in the continental scenario. */
const CACHE_SHARE = 0.039;
const ZIPF = 0.9;
const READS_PER_PERIOD = 50;
const STRAGGLERS = { probability: 0.02, factor: 10 };
const NO_STRAGGLERS = { probability: 0, factor: 1 };
const SEED = 1;

const CONTESTANTS = ["agarose", "one copy, CDN", "two copies, CDN", "striped, no parity"] as const;
type Contestant = (typeof CONTESTANTS)[number];
const PHASES = ["no faults", "2% stragglers", "nearest region down"] as const;
type Phase = (typeof PHASES)[number];

interface Sample {
  readonly pop: string;
  readonly contestant: Contestant;
  readonly phase: Phase;
  readonly bytes: number;
  /** Until the last byte; undefined when the read failed. */
  readonly ms: number | undefined;
}

interface StoredObject {
  readonly file: string;
  readonly key: string;
  readonly bytes: number;
}

export const comparisons: readonly Bench[] = Object.values(LAYOUTS).map((layout) => ({
  name: `comparison-${layout.name}`,
  title: `Comparison: ${layout.title}`,
  run: (options) => compare(layout, options),
}));

async function compare(layout: Layout, options: BenchOptions): Promise<string> {
  const objects = options.quick ? 10 : layout.objects;
  const reads = options.quick ? 10 : layout.reads;
  const geography = await layout.geography();
  const folder = await mkdtemp(join(tmpdir(), "agarose-comparison-"));
  const closers: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    options.progress(`${objects} objects`);
    const stored = await makeObjects(folder, objects);
    const cacheBytes = Math.round(CACHE_SHARE * stored.reduce((sum, { bytes }) => sum + bytes, 0));
    const start = async (...args: string[]): Promise<World> => {
      const world = await World.start(...layout.args, "--cache-bytes", String(cacheBytes), ...args);
      closers.push(() => world.stop());
      return world;
    };
    const [coded, striped] = [await start(), await start("--var", "DELTA=0")];
    await stripeWithoutParity(striped, geography, layout.k);
    options.progress("uploads");
    for (const world of [coded, striped]) {
      await world.agarose("put", ...stored.map(({ file }) => file), "--prefix", "bench/");
    }
    const nearest = (pop: string): string[] => byDistance(geography, pop);
    const origins = (copies: number) =>
      Object.fromEntries(
        geography.pops.map((pop) => [
          pop,
          nearest(pop)
            .slice(0, copies)
            .map((region) => wholeUrl(coded, region)),
        ]),
      );
    const withCopies = new Set(geography.pops.flatMap((pop) => nearest(pop).slice(0, 2)));
    for (const region of withCopies) await putWhole(coded.config, region, stored);
    const cdns: Cdn[] = [];
    for (const copies of [1, 2]) {
      const random = seededRandom(SEED + copies).next;
      const cdn = await startCdn({ ...layout, geography, cacheBytes, random, origins: origins(copies) });
      closers.push(() => cdn.close());
      cdns.push(cdn);
    }
    const chromium = await startBrowser();
    closers.push(() => chromium.close());
    const samples: Sample[] = [];
    for (const pop of geography.pops) {
      const ways = await openWays(chromium.browser, { coded, striped, cdns, pop });
      samples.push(
        ...(await runPop({ ...options, coded, striped, ways, pop, stored, reads, nearest: nearest(pop)[0]! })),
      );
      await ways.close();
    }
    return describe(layout, { samples, objects, reads, cacheBytes, browser: chromium.browser.version() });
  } finally {
    for (const close of closers.toReversed()) await close();
  }
}

/** Sizes are spread evenly over the logarithm, and popularity over the sizes. */
async function makeObjects(folder: string, count: number): Promise<StoredObject[]> {
  const sizes = Array.from({ length: count }, (_, i) =>
    Math.round(SIZES.min * (SIZES.max / SIZES.min) ** ((i + 0.5) / count)),
  );
  return Promise.all(
    seededRandom(SEED)
      .shuffle(sizes)
      .map(async (bytes, i) => {
        const file = join(folder, `object-${i}`);
        await writeFile(file, randomBytes(bytes));
        return { file, key: `bench/${basename(file)}`, bytes };
      }),
  );
}

/** k chunks in the k regions that are nearest on average, and nothing else. */
async function stripeWithoutParity(world: World, geography: Geography, k: number): Promise<void> {
  const mean = (region: string): number =>
    geography.pops.reduce((sum, pop) => sum + geography.regionLatencyMs[pop]![region]!, 0);
  const order = geography.regions.toSorted((a, b) => mean(a) - mean(b)).slice(0, k);
  const config = JSON.parse(await readFile(world.config, "utf8")) as { regions: { name: string }[] };
  const regions = order.map((name) => config.regions.find((region) => region.name === name)!);
  const code = { k, m: 0 };
  await writeFile(world.config, JSON.stringify({ ...config, regions, code, survive: { regions: 0, providers: 0 } }));
}

function byDistance({ regions, regionLatencyMs }: Geography, pop: string): string[] {
  return regions.toSorted((a, b) => regionLatencyMs[pop]![a]! - regionLatencyMs[pop]![b]!);
}

function wholeUrl(world: World, name: string): string {
  const { endpoint, bucket } = world.regions.find((region) => region.name === name)!;
  return `${endpoint}/${bucket}`;
}

interface Ways {
  /** Reads one object; the bytes that came, and how long that took. */
  readonly read: Record<Contestant, (key: string) => Promise<{ ms: number; bytes: number }>>;
  close(): Promise<void>;
}

async function openWays(
  browser: Browser,
  { coded, striped, cdns, pop }: { coded: World; striped: World; cdns: readonly Cdn[]; pop: string },
): Promise<Ways> {
  for (const world of [coded, striped]) await world.moveClient(pop);
  const contexts = await Promise.all([browser.newContext(), browser.newContext(), browser.newContext()]);
  const codedPage = await openControlledApp(contexts[0], coded);
  const stripedPage = await openControlledApp(contexts[1], striped);
  const plainPage = await contexts[2].newPage();
  // A document that comes over the network: others may not fetch from the loopback address.
  await plainPage.goto(`${coded.demo}agarose.json`);
  return {
    read: {
      agarose: (key) => timedRead(codedPage, `/ec/${key}`),
      "striped, no parity": (key) => timedRead(stripedPage, `/ec/${key}`),
      "one copy, CDN": (key) => timedRead(plainPage, `${cdns[0]!.urls[pop]}/o/${key}`),
      "two copies, CDN": (key) => timedRead(plainPage, `${cdns[1]!.urls[pop]}/o/${key}`),
    },
    async close() {
      for (const context of contexts) await context.close();
    },
  };
}

function timedRead(page: Page, url: string): Promise<{ ms: number; bytes: number }> {
  return page.evaluate(async (address) => {
    const start = performance.now();
    try {
      const response = await fetch(address, { cache: "no-store" });
      const { byteLength } = await response.arrayBuffer();
      return { ms: performance.now() - start, bytes: response.ok ? byteLength : 0 };
    } catch {
      return { ms: performance.now() - start, bytes: 0 };
    }
  }, url);
}

interface PopRun extends BenchOptions {
  readonly coded: World;
  readonly striped: World;
  readonly ways: Ways;
  readonly pop: string;
  readonly stored: readonly StoredObject[];
  readonly reads: number;
  /** The region that goes down. */
  readonly nearest: string;
}

async function runPop({ coded, striped, ways, pop, stored, reads, nearest, progress }: PopRun): Promise<Sample[]> {
  const worlds = [coded, striped];
  const regions = coded.regions.map(({ name }) => name);
  const setAll = async (stragglers: typeof STRAGGLERS, down: boolean): Promise<void> => {
    for (const world of worlds) {
      for (const region of regions) await world.breakRegion(region, { stragglers, down: down && region === nearest });
    }
  };
  const draw = zipf(stored, seededRandom(SEED).next);
  const samples: Sample[] = [];
  const runReads = async (phase: Phase, counted: boolean): Promise<void> => {
    for (let i = 0; i < reads; i++) {
      if (i % READS_PER_PERIOD === READS_PER_PERIOD - 1) for (const world of worlds) await world.cron();
      const { key, bytes } = draw();
      for (let turn = 0; turn < CONTESTANTS.length; turn++) {
        const contestant = CONTESTANTS[(i + turn) % CONTESTANTS.length]!;
        const answer = await ways.read[contestant](key);
        const ms = answer.bytes === bytes ? answer.ms : undefined;
        if (counted) samples.push({ pop, contestant, phase, bytes, ms });
      }
    }
  };
  await setAll(NO_STRAGGLERS, false);
  await runReads("no faults", false);
  for (const phase of PHASES) {
    await setAll(phase === "2% stragglers" ? STRAGGLERS : NO_STRAGGLERS, phase === "nearest region down");
    await runReads(phase, true);
    const of = (contestant: Contestant) =>
      statistics(samples.filter((sample) => sample.phase === phase && sample.contestant === contestant));
    progress(
      `${pop}, ${phase}: ` +
        CONTESTANTS.map((contestant) => {
          const { meanMs, p99Ms, failed } = of(contestant);
          return `${contestant} ${meanMs.toFixed(0)} (p99 ${p99Ms.toFixed(0)})${failed ? ` ${failed} FAILED` : ""}`;
        }).join(", "),
    );
  }
  await setAll(NO_STRAGGLERS, false);
  return samples;
}

function zipf(stored: readonly StoredObject[], random: () => number): () => StoredObject {
  const weights = stored.map((_, i) => (i + 1) ** -ZIPF);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return () => {
    let left = random() * total;
    return stored[weights.findIndex((weight) => (left -= weight) <= 0)] ?? stored[0]!;
  };
}

function statistics(samples: readonly Sample[]) {
  const times = samples.flatMap(({ ms }) => (ms === undefined ? [] : [ms])).toSorted((a, b) => a - b);
  return {
    meanMs: times.reduce((sum, ms) => sum + ms, 0) / times.length,
    p99Ms: times[Math.min(times.length - 1, Math.floor(0.99 * times.length))] ?? Number.NaN,
    failed: samples.length - times.length,
  };
}

function describe(
  layout: Layout,
  run: { samples: readonly Sample[]; objects: number; reads: number; cacheBytes: number; browser: string },
): string {
  const pick = (phase: Phase, contestant: Contestant, from = 0, to = Infinity) =>
    statistics(
      run.samples.filter(
        (sample) =>
          sample.phase === phase && sample.contestant === contestant && sample.bytes >= from && sample.bytes < to,
      ),
    );
  const rows = PHASES.flatMap((phase) =>
    CONTESTANTS.map((contestant) => {
      const all = pick(phase, contestant);
      const mean = (from: number, to: number): string => pick(phase, contestant, from, to).meanMs.toFixed(0);
      return [
        `${phase}: ${contestant}`,
        all.meanMs.toFixed(0),
        mean(0, SMALL),
        mean(SMALL, LARGE),
        mean(LARGE, Infinity),
        all.p99Ms.toFixed(0),
        String(all.failed),
      ];
    }),
  );
  const ratio = (a: number, b: number): string => (a / b).toFixed(2);
  const [ours, cdn] = ["agarose", "one copy, CDN"] as const;
  const small = ratio(pick("no faults", ours, 0, SMALL).meanMs, pick("no faults", cdn, 0, SMALL).meanMs);
  const large = ratio(pick("no faults", ours, LARGE).meanMs, pick("no faults", cdn, LARGE).meanMs);
  const tail = ratio(pick("2% stragglers", ours).p99Ms, pick("2% stragglers", cdn).p99Ms);
  const down = ratio(pick("nearest region down", ours).meanMs, pick("no faults", ours).meanMs);
  return [
    `${run.objects} objects of 0.1 to 8 MB (sizes even over their logarithm), Zipf ${ZIPF}, ${run.reads} reads of each phase from each PoP ` +
      `after as many uncounted ones, one after another from one page; every contestant caches ${(run.cacheBytes / 1e6).toFixed(1)} MB per PoP ` +
      `(${100 * CACHE_SHARE}% of all bytes). Links: latencies times ${layout.scale}, lognormal sigma ${layout.jitterSigma}, ` +
      `${layout.mbitPerSecond} Mbit/s per transfer. The CDN is a Worker with a least-recently-used cache of whole objects in KV, its one copy ` +
      "in the region nearest to each PoP (which flatters it: one copy can be nearest to one PoP only), two copies in the two nearest. " +
      `*Striped* is Agarose with k = n = ${layout.k} over the regions nearest on average, delta 0. A straggler takes ${STRAGGLERS.factor} times as long. ` +
      "Times until the last byte, of reads that succeeded.",
    table(["", "mean, ms", "< 1 MB", "1 - 4 MB", "> 4 MB", "p99, ms", "failed"], rows),
    `Agarose against one copy behind a CDN: mean of objects below 1 MB ${small}, above 4 MB ${large}; p99 with stragglers ${tail}. ` +
      `With the nearest region down its own mean is ${down} of that without faults.`,
    describeMachine(run.browser),
  ].join("\n\n");
}
