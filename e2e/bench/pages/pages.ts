/**
 * A page of a hundred small images: Agarose against one copy in the nearest region behind a CDN, over the same links,
 * taking turns in one run. The time is that from the first request to the last image.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "@playwright/test";
import { geographyOf, TABLE_I, type Geography } from "@agarose/dev-world";
import { LocalWorld } from "@agarose/dev-world/client";
import { loadScenario } from "agarose";
import { seededRandom } from "@agarose/solver";
import { openControlledApp } from "../../fixtures/app.ts";
import type { Bench, BenchOptions } from "../bench.ts";
import { startCdn } from "../comparison/cdn.ts";
import { startBrowser } from "../lib/browser.ts";
import { summarize, table } from "../lib/statistics.ts";
import { putWhole } from "../s3/sdk-put.ts";

const CONTINENTAL = fileURLToPath(import.meta.resolve("@agarose/solver/scenarios/continental.json"));
const IMAGES = 100;
const IMAGE_BYTES = 18_000;
const POP = "fra";
const ROUNDS = 7;
const CACHE_BYTES = 20_000_000;
const MBIT_PER_SECOND = 200;
const JITTER = 0.1;

interface Layout {
  readonly name: string;
  readonly geography: () => Promise<Geography>;
  readonly world: { readonly geography?: string; readonly scale?: number };
  readonly scale: number;
}

const LAYOUTS: readonly Layout[] = [
  {
    name: "continental",
    geography: async () => geographyOf(await loadScenario(CONTINENTAL)),
    world: { geography: CONTINENTAL },
    scale: 1,
  },
  { name: "Table I x 0.25", geography: async () => TABLE_I, world: { scale: 0.25 }, scale: 0.25 },
];

export const pages: Bench = {
  name: "pages",
  title: `Pages: ${IMAGES} images of 18 kB`,
  async run(options) {
    const rows: string[][] = [];
    for (const layout of LAYOUTS) rows.push(...(await measure(layout, options)));
    return [
      `Milliseconds from the first request of a page to its last image, medians of ${ROUNDS} rounds in which the`,
      `contestants take turns, Chromium beside the PoP \`${POP}\`. The other contestant is one copy in the region nearest to`,
      "the PoP behind a CDN Worker with as large a cache. Uncached: objects that were never asked for before. Cached: the",
      "same page again, after a period, by a service worker that has forgotten its plans.",
      "",
      table(["world", "cache", "Agarose", "one copy, CDN", "ratio", "requests of the client"], rows),
    ].join("\n");
  },
};

/** Requests that left the client until now. */
async function clientRequests(world: LocalWorld): Promise<number> {
  return (await world.log()).filter(({ from }) => from === "client").length;
}

async function measure(layout: Layout, options: BenchOptions): Promise<string[][]> {
  const rounds = options.quick ? 2 : ROUNDS;
  const geography = await layout.geography();
  const folder = await mkdtemp(join(tmpdir(), "agarose-pages-"));
  const closers: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    const links = { jitter: JITTER, mbit: MBIT_PER_SECOND, cacheBytes: CACHE_BYTES };
    const world = await LocalWorld.start({ ...layout.world, ...links, code: "auto" });
    closers.push(() => world.stop());
    const stored = await Promise.all(
      Array.from({ length: rounds * IMAGES }, async (_, i) => {
        const file = join(folder, `image-${i}`);
        await writeFile(file, randomBytes(IMAGE_BYTES));
        return { file, key: `bench/${basename(file)}` };
      }),
    );
    options.progress(`${layout.name}: uploads`);
    for (const { key, file } of stored) await world.put(key, file);
    const nearest = geography.regions.toSorted(
      (a, b) => geography.regionLatencyMs[POP]![a]! - geography.regionLatencyMs[POP]![b]!,
    )[0]!;
    await putWhole(world.config, nearest, stored);
    const { endpoint, bucket } = world.regions.find(({ name }) => name === nearest)!;
    const origins = Object.fromEntries(geography.pops.map((pop) => [pop, [`${endpoint}/${bucket}`]]));
    const cdn = await startCdn({
      geography,
      scale: layout.scale,
      jitterSigma: JITTER,
      mbitPerSecond: MBIT_PER_SECOND,
      cacheBytes: CACHE_BYTES,
      random: seededRandom(1).next,
      origins,
    });
    closers.push(() => cdn.close());
    await world.client.near(POP);
    const { browser, close } = await startBrowser();
    closers.push(close);
    const ours = await openControlledApp(await browser.newContext(), world);
    const plain = await (await browser.newContext()).newPage();
    await plain.goto(`${world.app}agarose.json`);
    const times: Record<string, number[]> = {};
    const note = (name: string, ms: number): void => void (times[name] ??= []).push(ms);
    const requests: Record<string, number[]> = {};
    for (const cache of ["uncached", "cached"] as const) {
      for (let round = 0; round < rounds; round++) {
        const keys = stored.slice(round * IMAGES, (round + 1) * IMAGES).map(({ key }) => key);
        const ask = {
          agarose: async () => {
            const before = await clientRequests(world);
            note(`${cache} agarose`, await timePage(ours, "/ec/", keys));
            (requests[cache] ??= []).push((await clientRequests(world)) - before);
          },
          cdn: async () => note(`${cache} cdn`, await timePage(plain, `${cdn.urls[POP]}/o/`, keys)),
        };
        for (const contestant of round % 2 === 0 ? (["agarose", "cdn"] as const) : (["cdn", "agarose"] as const)) {
          await ask[contestant]();
        }
        // Plans live for a minute; a purge forgets them at once.
        await ours.evaluate(() =>
          navigator.serviceWorker.controller?.postMessage({ agarose: "purge", prefix: "bench/" }),
        );
      }
      await world.cron();
      await world.cron();
    }
    return ["uncached", "cached"].map((cache) => {
      const median = (values: readonly number[] | undefined): number => summarize(values!).median;
      const [own, other] = [median(times[`${cache} agarose`]), median(times[`${cache} cdn`])];
      const count = median(requests[cache]);
      options.progress(`${layout.name} ${cache}: ${times[`${cache} agarose`]!.map(Math.round).join(" ")}`);
      options.progress(`   against ${times[`${cache} cdn`]!.map(Math.round).join(" ")}; ${count} requests`);
      return [layout.name, cache, own.toFixed(0), other.toFixed(0), (own / other).toFixed(2), String(count)];
    });
  } finally {
    for (const close of closers.toReversed()) await close();
  }
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
