/**
 * Agarose against what else one could do with the same caches: one code for all sizes, whole copies behind a CDN, and
 * striping without parity. Real reads in Chromium over the emulated WAN, contestants taking turns read by read.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Browser, BrowserContext, Page } from "@playwright/test";
import { WORLDS, type Geography } from "@agarose/dev-world";
import { seededRandom } from "@agarose/solver/random";
import { openControlledApp } from "../../fixtures/app.ts";
import { LocalWorld, type LocalWorldOptions } from "@agarose/dev-world/client";
import type { Bench, BenchOptions } from "../bench.ts";
import { openPlainPage, startBrowser } from "../lib/browser.ts";
import { startCdn, type Cdn } from "./cdn.ts";
import {
  CACHE_SHARE,
  CONTESTANTS,
  describe,
  JITTER,
  PERIODS,
  PHASES,
  statistics,
  STRAGGLERS,
  ZIPF,
  type Contestant,
  type Layout,
  type Phase,
  type Sample,
} from "./comparison-report.ts";
import { putWhole } from "../s3/sdk-put.ts";

const LAYOUTS: readonly Layout[] = [
  {
    name: "continental",
    title: "six providers of one continent, against whole copies behind a CDN",
    world: "continental",
    code: { k: 4, m: 2 },
    objects: 200,
    reads: 150,
  },
  {
    name: "table-i",
    title: "six regions of the whole world, against whole copies behind a CDN",
    world: "agar",
    code: { k: 9, m: 3 },
    objects: 100,
    // Reads take up to seconds here, and the differences are large.
    reads: 30,
  },
];

const SIZES = { min: 100_000, max: 8_000_000 };
const NO_STRAGGLERS = { probability: 0, factor: 1 };
const SEED = 1;

interface StoredObject {
  readonly file: string;
  readonly key: string;
  readonly bytes: number;
}

export const comparisons: readonly Bench[] = LAYOUTS.map((layout) => ({
  name: `comparison-${layout.name}`,
  title: `Comparison: ${layout.title}`,
  run: (options) => compare(layout, options),
}));

async function compare(layout: Layout, options: BenchOptions): Promise<string> {
  const objects = options.quick ? 10 : layout.objects;
  const reads = options.quick ? 10 : layout.reads;
  const { geography, scale } = WORLDS[layout.world];
  const folder = await mkdtemp(join(tmpdir(), "agarose-comparison-"));
  const closers: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    options.progress(`${objects} objects`);
    const stored = await makeObjects(folder, objects);
    const cacheBytes = Math.round(CACHE_SHARE * stored.reduce((sum, { bytes }) => sum + bytes, 0));
    const links = { cacheBytes, lineMbit: 0, jitter: JITTER };
    const start = async (
      code: LocalWorldOptions["code"],
      variables: Record<string, string> = {},
    ): Promise<LocalWorld> => {
      const world = await LocalWorld.start({ world: layout.world, ...links, variables, ...(code && { code }) });
      closers.push(() => world.stop());
      return world;
    };
    const bySize = await start("auto");
    const oneCode = await start(layout.code);
    const striped = await start(undefined, { DELTA: "0" });
    await stripeWithoutParity(striped, geography, layout.code.k);
    const worlds = { bySize, oneCode, striped };
    options.progress("uploads");
    const store = async (world: LocalWorld): Promise<void> => {
      await world.agarose("put", ...stored.map(({ file }) => file), "--prefix", "bench/");
      // A put succeeds while a far region is late. Its objects could not do without another one.
      await world.agarose("repair", "--queued");
    };
    await Promise.all(Object.values(worlds).map(store));
    const nearest = (pop: string): string[] => byDistance(geography, pop);
    const origins = (copies: number) =>
      Object.fromEntries(
        geography.pops.map((pop) => [
          pop,
          nearest(pop)
            .slice(0, copies)
            .map((region) => wholeUrl(bySize, region)),
        ]),
      );
    const withCopies = new Set(geography.pops.flatMap((pop) => nearest(pop).slice(0, 2)));
    const files = new Map(stored.map(({ key, file }) => [key, file]));
    for (const region of withCopies) await putWhole(bySize, region, files);
    const cdns: Cdn[] = [];
    for (const copies of [1, 2]) {
      const random = seededRandom(SEED + copies).next;
      const cdn = await startCdn({
        geography,
        scale,
        jitterSigma: JITTER,
        cacheBytes,
        random,
        origins: origins(copies),
      });
      closers.push(() => cdn.close());
      cdns.push(cdn);
    }
    const chromium = await startBrowser();
    closers.push(() => chromium.close());
    const samples: Sample[] = [];
    for (const pop of geography.pops) {
      const ways = await openWays(chromium, { worlds, cdns, pop });
      const scrubbed = [bySize, oneCode];
      const run = { worlds: Object.values(worlds), scrubbed, ways, pop, stored, reads, nearest: nearest(pop)[0]! };
      samples.push(...(await runPop({ ...options, ...run })));
      await ways.close();
    }
    return describe(layout, { samples, objects, reads, cacheBytes, browser: chromium.version() });
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
async function stripeWithoutParity(world: LocalWorld, geography: Geography, k: number): Promise<void> {
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

function wholeUrl(world: LocalWorld, name: string): string {
  const { endpoint, bucket } = world.regions.find((region) => region.name === name)!;
  return `${endpoint}/${bucket}`;
}

interface Worlds {
  readonly bySize: LocalWorld;
  readonly oneCode: LocalWorld;
  readonly striped: LocalWorld;
}

interface Ways {
  /** Reads one object; the bytes that came, and how long that took. */
  readonly read: Record<Contestant, (key: string) => Promise<{ ms: number; bytes: number }>>;
  close(): Promise<void>;
}

async function openWays(
  browser: Browser,
  { worlds, cdns, pop }: { readonly worlds: Worlds; readonly cdns: readonly Cdn[]; readonly pop: string },
): Promise<Ways> {
  const contexts: BrowserContext[] = [];
  const context = async (): Promise<BrowserContext> => {
    const opened = await browser.newContext();
    contexts.push(opened);
    return opened;
  };
  const open = async (world: LocalWorld): Promise<Page> => {
    await world.client.near(pop);
    return openControlledApp(await context(), world);
  };
  const [bySizePage, oneCodePage, stripedPage] = [
    await open(worlds.bySize),
    await open(worlds.oneCode),
    await open(worlds.striped),
  ];
  const plainPage = await openPlainPage(await context(), worlds.bySize);
  return {
    read: {
      agarose: (key) => timedRead(bySizePage, `/ec/${key}`),
      "agarose, one code": (key) => timedRead(oneCodePage, `/ec/${key}`),
      "striped, no parity": (key) => timedRead(stripedPage, `/ec/${key}`),
      "one copy, CDN": (key) => timedRead(plainPage, `${cdns[0]!.urls[pop]}/o/${key}`),
      "two copies, CDN": (key) => timedRead(plainPage, `${cdns[1]!.urls[pop]}/o/${key}`),
    },
    async close() {
      for (const opened of contexts) await opened.close();
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
  readonly worlds: readonly LocalWorld[];
  /** Those of `worlds` whose hot objects get extra chunks, as a daily scrub stores them. */
  readonly scrubbed: readonly LocalWorld[];
  readonly ways: Ways;
  readonly pop: string;
  readonly stored: readonly StoredObject[];
  readonly reads: number;
  /** The region that goes down. */
  readonly nearest: string;
}

async function runPop({ worlds, scrubbed, ways, pop, stored, reads, nearest, progress }: PopRun): Promise<Sample[]> {
  const setAll = async (stragglers: typeof STRAGGLERS, down: boolean): Promise<void> => {
    for (const world of worlds) {
      for (const { name } of world.regions) {
        await world.region(name).set({ stragglers, down: down && name === nearest });
      }
    }
  };
  const readsPerPeriod = Math.floor(reads / PERIODS);
  const draw = zipf(stored, seededRandom(SEED).next);
  const samples: Sample[] = [];
  const runReads = async (phase: Phase, counted: boolean): Promise<void> => {
    for (let i = 0; i < reads; i++) {
      if (i % readsPerPeriod === readsPerPeriod - 1) await Promise.all(worlds.map((world) => world.cron()));
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
  const scrub = async (world: LocalWorld): Promise<void> => {
    const { hot } = (await world.agarose("scrub")) as { hot?: unknown };
    if (hot === undefined) throw new Error("no PoP answered what is popular there");
    progress(`${pop}: scrubbed, ${JSON.stringify(hot)}`);
  };
  await Promise.all(scrubbed.map(scrub));
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
