/**
 * A page of a hundred small images: Agarose against one copy in the nearest region behind a CDN, over the same links,
 * taking turns in one run. The time is that from the first request to the last image.
 */
import { randomBytes } from "node:crypto";
import type { Page } from "@playwright/test";
import { WORLDS, type WorldName } from "@agarose/dev-world";
import { LocalWorld } from "@agarose/dev-world/client";
import { seededRandom } from "@agarose/solver/random";
import type { Bench, BenchOptions } from "../bench.ts";
import { summarize, table } from "@agarose/dev-world/statistics";
import { describeMachine } from "@agarose/dev-world/machine";
import { openControlledApp } from "../../fixtures/app.ts";
import { isOfReads, requestsDuring } from "../../fixtures/requests-during.ts";
import { startCdn } from "../comparison/cdn.ts";
import { chromiumVersion, openPlainPage, startBrowser } from "../lib/browser.ts";
import { putWhole } from "../s3/sdk-put.ts";

/** The PoP beside the browser. */
const POP = "fra";
/** Of the logarithm of each latency. */
const JITTER = 0.1;
const LAYOUTS: readonly { readonly name: string; readonly world: WorldName }[] = [
  { name: "continental", world: "continental" },
  { name: "Table I x 0.25", world: "agar" },
];

const IMAGES = 100;
const IMAGE_BYTES = 18_000;
const ROUNDS = 7;
const CACHE_BYTES = 20_000_000;
/** A policy does not keep what was asked for once. */
const WARM_READS = 2;
/** How often the pages were read before. */
const CACHES = ["uncached", "again", "cached"] as const;

export const pages: Bench = {
  name: "pages",
  title: `Pages: ${IMAGES} images of 18 kB`,
  async run(options) {
    const rows: string[][] = [];
    for (const layout of LAYOUTS) rows.push(...(await measure(layout, options)));
    return [
      `Milliseconds from the first request of a page to its last image, medians of ${ROUNDS} rounds in which the`,
      `contestants take turns, Chromium beside the PoP \`${POP}\`. The other contestant is one copy in the region nearest to`,
      "the PoP behind a CDN Worker with as large a cache. Uncached: objects that were never asked for before. Again: the",
      `same page after a period, by a service worker that has forgotten its plans. Cached: the same after ${WARM_READS} more`,
      "reads and periods, when the PoP's policy has chosen the objects; the CDN caches what it sends once.",
      "",
      table(["world", "cache", "Agarose", "one copy, CDN", "ratio", "requests of the client", "of the PoP"], rows),
      "",
      describeMachine(await chromiumVersion()),
    ].join("\n");
  },
};

/** How many requests for reads leave the client, and the PoP beside it, while `read` runs. */
async function requestsOf(world: LocalWorld, read: () => Promise<void>): Promise<Record<"client" | "pop", number>> {
  const log = (await requestsDuring(world, read)).filter(isOfReads);
  return {
    client: log.filter(({ from }) => from === "client").length,
    pop: log.filter(({ from }) => from === POP).length,
  };
}

async function measure(
  { name, world: worldName }: (typeof LAYOUTS)[number],
  options: BenchOptions,
): Promise<string[][]> {
  const rounds = options.quick ? 2 : ROUNDS;
  const keys = Array.from({ length: rounds * IMAGES }, (_, i) => `bench/image-${i}`);
  options.progress(`${name}: uploads`);
  const images = new Map(keys.map((key) => [key, randomBytes(IMAGE_BYTES)]));
  const { world, ours, plain, cdn, close } = await startContest(worldName, images);
  try {
    const times: Record<string, number[]> = {};
    const note = (series: string, ms: number): void => void (times[series] ??= []).push(ms);
    const pageOf = (round: number): string[] => keys.slice(round * IMAGES, (round + 1) * IMAGES);
    const requests: Record<string, Record<"client" | "pop", number>[]> = {};
    for (const cache of CACHES) {
      const warmReads = cache === "cached" ? WARM_READS : 0;
      for (let i = 0; i < warmReads; i++) {
        for (let round = 0; round < rounds; round++) await timePage(ours, "/ec/", pageOf(round));
        await nextPeriod(world, ours);
      }
      for (let round = 0; round < rounds; round++) {
        const page = pageOf(round);
        const ask = {
          agarose: async () => {
            const read = async (): Promise<void> => note(`${cache} agarose`, await timePage(ours, "/ec/", page));
            (requests[cache] ??= []).push(await requestsOf(world, read));
          },
          cdn: async () => note(`${cache} cdn`, await timePage(plain, cdn, page)),
        };
        for (const contestant of round % 2 === 0 ? (["agarose", "cdn"] as const) : (["cdn", "agarose"] as const)) {
          await ask[contestant]();
        }
      }
      await nextPeriod(world, ours);
    }
    return CACHES.map((cache) => {
      const median = (values: readonly number[] | undefined): number => summarize(values!).median;
      const [own, other] = [median(times[`${cache} agarose`]), median(times[`${cache} cdn`])];
      const [client, pop] = (["client", "pop"] as const).map((from) =>
        median(requests[cache]!.map((all) => all[from])),
      );
      options.progress(`${name} ${cache}: ${times[`${cache} agarose`]!.map(Math.round).join(" ")}`);
      options.progress(`   against ${times[`${cache} cdn`]!.map(Math.round).join(" ")}; ${client} and ${pop} requests`);
      return [name, cache, own.toFixed(0), other.toFixed(0), (own / other).toFixed(2), String(client), String(pop)];
    });
  } finally {
    await close();
  }
}

interface Contest {
  readonly world: LocalWorld;
  /** A page under the service worker. */
  readonly ours: Page;
  /** A page of the same origin without one. */
  readonly plain: Page;
  /** Address of the CDN: `<url><key>`. */
  readonly cdn: string;
  close(): Promise<void>;
}

/** Starts both with `objects` stored: the copy is in the region nearest to the PoP. */
async function startContest(name: WorldName, objects: ReadonlyMap<string, Uint8Array>): Promise<Contest> {
  const { geography, scale } = WORLDS[name];
  const closers: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.toReversed()) await closer();
  };
  try {
    const links = { jitter: JITTER, lineMbit: 0, cacheBytes: CACHE_BYTES };
    const world = await LocalWorld.start({ world: name, ...links, code: "auto" });
    closers.push(() => world.stop());
    for (const [key, content] of objects) await world.put(key, content);
    const latencyMs = geography.regionLatencyMs[POP]!;
    const nearest = geography.regions.toSorted((a, b) => latencyMs[a]! - latencyMs[b]!)[0]!;
    await putWhole(world, nearest, objects);
    const { endpoint, bucket } = world.regions.find((region) => region.name === nearest)!;
    const cdn = await startCdn({
      geography,
      scale,
      jitterSigma: JITTER,
      cacheBytes: CACHE_BYTES,
      random: seededRandom(1).next,
      origins: Object.fromEntries(geography.pops.map((pop) => [pop, [`${endpoint}/${bucket}`]])),
    });
    closers.push(() => cdn.close());
    await world.client.near(POP);
    const browser = await startBrowser();
    closers.push(() => browser.close());
    const ours = await openControlledApp(await browser.newContext(), world);
    const plain = await openPlainPage(await browser.newContext(), world);
    return { world, ours, plain, cdn: `${cdn.urls[POP]}/o/`, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The PoPs plan and fill their caches, and the service worker forgets its plans. */
async function nextPeriod(world: LocalWorld, ours: Page): Promise<void> {
  await world.cron();
  await world.cron();
  // They live for a minute.
  await ours.evaluate(() => {
    navigator.serviceWorker.controller?.postMessage({ agarose: "purge", prefix: "bench/" });
  });
}

/** Milliseconds until all images are there, as a page's own `<img>` elements would ask for them. */
function timePage(page: Page, base: string, keys: readonly string[]): Promise<number> {
  return page.evaluate(
    async ({ urls, bytes }) => {
      const start = performance.now();
      await Promise.all(
        urls.map(async (url) => {
          const response = await fetch(url, { cache: "no-store" });
          if (!response.ok) throw new Error(`${url}: ${await response.text()}`);
          const { byteLength } = await response.arrayBuffer();
          if (byteLength !== bytes) throw new Error(`${url} has ${byteLength} bytes`);
        }),
      );
      return performance.now() - start;
    },
    { urls: keys.map((key) => base + key), bytes: IMAGE_BYTES },
  );
}
