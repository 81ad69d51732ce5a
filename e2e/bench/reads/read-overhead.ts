/**
 * The cost of reading through the service worker when it has nothing left to save: a 1 MB object whose k chunks
 * are all in the PoP's cache, against a plain `fetch` of the same bytes from the same PoP over the same emulated link.
 *
 * Plain fetches run in a page without a service worker, because one in control would delay them too.
 */
import { randomBytes } from "node:crypto";
import type { Browser, Page } from "@playwright/test";
import { openControlledApp, read, sha256 } from "../../fixtures/app.ts";
import { TABLE_I } from "@agarose/dev-world";
import { LocalWorld } from "@agarose/dev-world/client";
import type { Bench, BenchOptions } from "../bench.ts";
import { openPlainPage, startBrowser } from "../lib/browser.ts";
import { describeMachine } from "@agarose/dev-world/machine";
import { spread, summarize, table, type Summary } from "@agarose/dev-world/statistics";

const KEY = "bench/one-megabyte";
const BYTES = 1_000_000;
const PAIRS = 40;
const WARM_UP = 6;
/** The PoP's `TABLE_I.cacheLatencyMs["fra"]!` times these. */
const LINKS = [
  { scale: 1, mbit: 200 },
  { scale: 0.25, mbit: 200 },
  { scale: 0.05, mbit: 200 },
  { scale: 0.01, mbit: 0 },
];
/**
 * Every bucket is at least so far. Where they belong, the nearest is as near as the last byte of the bundle on such
 * links, and the read plan rightly uses both: another measurement.
 */
const BUCKET_MS_MIN = 600;

/**
 * A read whose bundle is late asks a bucket too and is then mixed; more than this share would be another measurement.
 */
const HEDGED_MAX = 0.1;

interface Result {
  readonly link: (typeof LINKS)[number];
  /** Reads that used a bucket's chunk, because the PoP was later than it had been. They count like the others. */
  readonly hedged: number;
  readonly worker: Summary;
  readonly bundle: Summary;
  readonly object: Summary;
}

export const readOverhead: Bench = {
  name: "read-overhead",
  title: "Overhead of a cached read through the service worker",
  async run(options) {
    const chromium = await startBrowser();
    try {
      const results: Result[] = [];
      for (const link of LINKS) results.push(await measureLink(chromium, link, options));
      return describe(results, chromium.version());
    } finally {
      await chromium.close();
    }
  },
};

async function measureLink(browser: Browser, link: Result["link"], { quick, progress }: BenchOptions): Promise<Result> {
  const world = await LocalWorld.start({
    world: "agar",
    scale: link.scale,
    mbit: link.mbit,
    jitter: 0,
    cacheBytes: 20_000_000,
  });
  try {
    for (const [name, ms] of Object.entries(TABLE_I.regionLatencyMs["fra"]!)) {
      await world.region(name).set({ latencyFactor: Math.max(1, BUCKET_MS_MIN / (ms * link.scale)) });
    }
    const content = randomBytes(BYTES);
    await world.put(KEY, content);
    const { controlled, plain, close } = await openPages(browser, world);
    await cacheWholly(world, controlled);
    const version = (await plainFetch(plain, `${world.pops[0]!.url}/o/${KEY}`)).version;
    const urls = {
      bundle: `${world.pops[0]!.url}/v1/read/${KEY}?version=${version}&from=0&to=0`,
      object: `${world.pops[0]!.url}/o/${KEY}`,
    };
    const times = { worker: [] as number[], bundle: [] as number[], object: [] as number[] };
    const pairs = quick ? 5 : PAIRS;
    let hedged = 0;
    for (let i = 0; i < WARM_UP + pairs; i++) {
      const answer = await read(controlled, KEY);
      if (answer.sha256 !== sha256(content)) throw new Error(`read ${i} returned other bytes`);
      const bundle = await plainFetch(plain, urls.bundle);
      const object = await plainFetch(plain, urls.object);
      if (object.bytes !== BYTES || bundle.bytes < BYTES) throw new Error("a plain fetch returned fewer bytes");
      if (i < WARM_UP) continue;
      if (answer.headers["x-agarose-read"] !== "edge") hedged++;
      times.worker.push(answer.ms);
      times.bundle.push(bundle.ms);
      times.object.push(object.ms);
    }
    await close();
    if (hedged > pairs * HEDGED_MAX) throw new Error(`${hedged} of ${pairs} reads were not of kind edge`);
    const result = {
      link,
      hedged,
      worker: summarize(times.worker),
      bundle: summarize(times.bundle),
      object: summarize(times.object),
    };
    progress(
      `scale ${link.scale}, ${link.mbit} Mbit/s: worker ${spread(result.worker)}, bundle ${spread(result.bundle)}, ` +
        `object ${spread(result.object)} ms, ${hedged} not edge`,
    );
    return result;
  } finally {
    await world.stop();
  }
}

async function openPages(browser: Browser, world: LocalWorld) {
  const contexts = [await browser.newContext(), await browser.newContext()] as const;
  return {
    controlled: await openControlledApp(contexts[0], world),
    plain: await openPlainPage(contexts[1], world),
    close: async () => void (await Promise.all(contexts.map((context) => context.close()))),
  };
}

/** Makes the object popular and lets the cache manager cache it, which may take it two periods. */
async function cacheWholly(world: LocalWorld, page: Page): Promise<void> {
  for (let period = 0; period < 4; period++) {
    for (let i = 0; i < 5; i++) await read(page, KEY);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    await world.cron();
    // A PoP looks for a new configuration every 5 s.
    await new Promise((resolve) => setTimeout(resolve, 5_500));
    await read(page, KEY);
    if ((await read(page, KEY)).headers["x-agarose-read"] === "edge") return;
  }
  throw new Error("the cache manager did not cache the whole object");
}

function plainFetch(page: Page, url: string): Promise<{ bytes: number; ms: number; version: string }> {
  return page.evaluate(async (address) => {
    const start = performance.now();
    const response = await fetch(address, { cache: "no-store", credentials: "omit" });
    const { byteLength } = await response.arrayBuffer();
    const ms = performance.now() - start;
    if (!response.ok) throw new Error(`${address} answered ${response.status}`);
    return { bytes: byteLength, ms, version: (response.headers.get("etag") ?? "").replaceAll('"', "") };
  }, url);
}

function describe(results: readonly Result[], browser: string): string {
  const rows = results.map(({ link, hedged, worker, bundle, object }) => [
    `${(TABLE_I.cacheLatencyMs["fra"]! * link.scale).toFixed(link.scale < 0.02 ? 1 : 0)} ms, ${link.mbit > 0 ? `${link.mbit} Mbit/s` : "unlimited"}`,
    spread(worker),
    spread(bundle),
    spread(object),
    (worker.median / bundle.median).toFixed(2),
    (worker.median / object.median).toFixed(2),
    String(hedged),
  ]);
  return [
    `A ${BYTES / 1e6} MB object (9+3) whose nine data chunks are all cached at the PoP (reads of kind \`edge\`, except those of the last column, which hedged because the PoP was late). ` +
      `Milliseconds from the call of \`fetch\` to the last byte in the page, median (quartiles) of ${results[0]!.worker.count} rounds; ` +
      "each round is one read through the service worker, one plain `fetch` of the raw bundle body, and one of `/o/<key>`, " +
      "the latter two in a page without a service worker. All go to the same PoP over the same emulated link. " +
      `Buckets are ${BUCKET_MS_MIN} ms away or more, so that none competes with the cache.`,
    table(
      ["link", "service worker", "raw bundle", "`/o/<key>`", "ratio to bundle", "ratio to `/o/`", "not `edge`"],
      rows,
    ),
    describeMachine(browser),
  ].join("\n\n");
}
