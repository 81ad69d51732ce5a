/**
 * Agarose and one copy behind a CDN Worker, over the same links with as large a cache: a browser beside the PoP asks
 * both in turn.
 */
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Page } from "@playwright/test";
import { geographyOf, TABLE_I, type Geography } from "@agarose/dev-world";
import { LocalWorld } from "@agarose/dev-world/client";
import { loadScenario } from "agarose";
import { seededRandom } from "@agarose/solver/random";
import { openControlledApp } from "../../fixtures/app.ts";
import { startCdn } from "../comparison/cdn.ts";
import { openPlainPage, startBrowser } from "../lib/browser.ts";
import { putWhole } from "../s3/sdk-put.ts";

export const CONTINENTAL = fileURLToPath(import.meta.resolve("@agarose/solver/scenarios/continental.json"));
const MBIT_PER_SECOND = 200;
const JITTER = 0.1;

/** The PoP beside the browser. */
export const POP = "fra";

/** Where regions and PoPs are. */
export interface Layout {
  readonly name: string;
  readonly geography: () => Promise<Geography>;
  readonly world: { readonly world?: "agar"; readonly geography?: string };
  readonly scale: number;
}

export const LAYOUTS: readonly Layout[] = [
  {
    name: "continental",
    geography: async () => geographyOf(await loadScenario(CONTINENTAL)),
    world: { geography: CONTINENTAL },
    scale: 1,
  },
  { name: "Table I x 0.25", geography: async () => TABLE_I, world: { world: "agar" as const }, scale: 0.25 },
];

/** Both contestants, with the same objects stored. */
export interface Contest {
  readonly world: LocalWorld;
  /** A page under the service worker. */
  readonly ours: Page;
  /** A page of the same origin without one. */
  readonly plain: Page;
  /** Address of the CDN: `<url><key>`. */
  readonly cdn: string;
  /** The region nearest to the PoP, which has the one copy. */
  readonly nearest: string;
  close(): Promise<void>;
}

/** How both are set up. */
export interface ContestOptions {
  readonly cacheBytes: number;
  /** Of the client's line, which its downloads share. Default: unlimited. */
  readonly clientMbit?: number;
  /** Whether the copies are compressed as servers do it. */
  readonly gzip?: boolean;
}

/** Starts both with `objects` stored. */
export async function startContest(
  layout: Layout,
  objects: ReadonlyMap<string, Uint8Array>,
  { cacheBytes, clientMbit = 0, gzip = false }: ContestOptions,
): Promise<Contest> {
  const geography = await layout.geography();
  const closers: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.toReversed()) await closer();
  };
  try {
    const links = { jitter: JITTER, mbit: MBIT_PER_SECOND, cacheBytes };
    const world = await LocalWorld.start({ ...layout.world, ...links, code: "auto" });
    closers.push(() => world.stop());
    for (const [key, content] of objects) await world.put(key, content);
    const nearest = geography.regions.toSorted(
      (a, b) => geography.regionLatencyMs[POP]![a]! - geography.regionLatencyMs[POP]![b]!,
    )[0]!;
    const zipped = [...objects].map(
      ([key, content]) => [key, gzip ? gzipSync(content, { level: 6 }) : content] as const,
    );
    await putWhole(world, nearest, new Map(zipped));
    const { endpoint, bucket } = world.regions.find(({ name }) => name === nearest)!;
    const cdn = await startCdn({
      geography,
      scale: layout.scale,
      jitterSigma: JITTER,
      mbitPerSecond: MBIT_PER_SECOND,
      cacheBytes,
      clientMbit,
      coding: gzip ? "gzip" : undefined,
      random: seededRandom(1).next,
      origins: Object.fromEntries(geography.pops.map((pop) => [pop, [`${endpoint}/${bucket}`]])),
    });
    closers.push(() => cdn.close());
    await world.client.near(POP);
    await world.client.throttle(clientMbit);
    const browser = await startBrowser();
    closers.push(browser.close);
    const ours = await openControlledApp(await browser.browser.newContext(), world);
    const plain = await openPlainPage(await browser.browser.newContext(), world);
    return { world, ours, plain, cdn: `${cdn.urls[POP]}/o/`, nearest, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Makes the service worker forget the plans of keys that begin with `prefix`: they live for a minute. */
export function forgetPlans(page: Page, prefix: string): Promise<void> {
  return page.evaluate((begin) => {
    navigator.serviceWorker.controller?.postMessage({ agarose: "purge", prefix: begin });
  }, prefix);
}

/** Whether a request is part of a read, not a probe of a PoP. */
export function isOfReads({ path }: { readonly path: string }): boolean {
  return !path.startsWith("/healthz");
}
