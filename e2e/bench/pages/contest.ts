/** Agarose beside copies of the same objects in one local world, read by pages of one browser that take turns. */
import { fileURLToPath } from "node:url";
import type { Browser } from "@playwright/test";
import { LocalWorld } from "@agarose/dev-world/client";
import { summarize } from "@agarose/dev-world/statistics";
import type { AppPage } from "../../fixtures/app-page.ts";
import { takeServiceWorker } from "../../fixtures/app.ts";
import { isOfReads, requestsDuring } from "../../fixtures/requests-during.ts";
import { openBarePage } from "../lib/bare-page.ts";
import { startBrowser } from "../lib/browser.ts";
import { putWhole } from "../s3/sdk-put.ts";

const CONTINENTAL = fileURLToPath(import.meta.resolve("@agarose/solver/scenarios/continental.json"));
/** The PoP beside the browser. */
export const POP = "fra";

interface ContestOptions {
  readonly code: "auto" | { readonly k: number; readonly m: number };
  /** Of each PoP. Default: that of the world. */
  readonly cacheBytes?: number;
}

/** Starts the world `continental` and a browser for `measure`, and stops them. */
export async function inContest(
  { code, cacheBytes }: ContestOptions,
  measure: (contest: Contest) => Promise<void>,
): Promise<void> {
  const world = await LocalWorld.start({
    geography: CONTINENTAL,
    jitter: 0.1,
    mbit: 200,
    code,
    ...(cacheBytes && { cacheBytes }),
  });
  const browser = await startBrowser();
  try {
    await world.client.near(POP);
    // A PoP that runs knows its regions.
    await world.cron();
    await measure(await Contest.open(world, browser));
  } finally {
    await browser.close();
    await world.stop();
  }
}

/** The contestants. */
export class Contest {
  readonly world: LocalWorld;
  /** The regions of the copies, nearest first, … */
  readonly regions: readonly [string, string];
  /** … and their addresses: `<copy><key>`. */
  readonly copies: readonly string[];
  /** Reads by the service worker. A measurement may replace it by another visitor. */
  ours: AppPage;
  /** Reads copies, without a service worker. */
  readonly plain: AppPage;
  readonly #browser: Browser;

  static async open(world: LocalWorld, browser: Browser): Promise<Contest> {
    const ours = await openOurs(world, browser);
    // From the network, because other documents may not fetch from the loopback address.
    const plain = await openBarePage(browser, `${world.app}agarose.json`);
    const [nearest, second] = world.regions.map(({ name }) => name) as [string, string];
    const urls = await plain.evaluate(
      async (names) => {
        const { regions } = await (await fetch("/agarose.json")).json();
        return names.map((name) => `${regions.find((region: { name: string }) => region.name === name).url}/`);
      },
      [nearest, second],
    );
    return new Contest(world, browser, ours, plain, [nearest, second], urls);
  }

  private constructor(
    world: LocalWorld,
    browser: Browser,
    ours: AppPage,
    plain: AppPage,
    regions: readonly [string, string],
    copies: readonly string[],
  ) {
    this.world = world;
    this.#browser = browser;
    this.ours = ours;
    this.plain = plain;
    this.regions = regions;
    this.copies = copies;
  }

  /** Opens the page of another visitor. */
  visitor(): Promise<AppPage> {
    return openOurs(this.world, this.#browser);
  }

  /** Stores `objects`, and copies of them in `regions`. */
  async put(objects: ReadonlyMap<string, Uint8Array>, regions: readonly string[] = this.regions): Promise<void> {
    for (const [key, content] of objects) await this.world.put(key, content);
    for (const region of regions) await putWhole(this.world, region, objects);
  }

  /** Gives the client's line a rate, 0 for unlimited, and returns how a table names it. */
  async throttle(mbit: number): Promise<string> {
    await this.world.client.throttle(mbit);
    return mbit === 0 ? "unlimited" : `${mbit} Mbit/s`;
  }

  /** What `read` returns in every round, by contestant: Agarose, and then each of `others`, by the copies it has. */
  async takeTurns<T>(
    rounds: number,
    others: readonly (readonly string[])[],
    read: (page: AppPage, bases: readonly string[], round: number) => Promise<T>,
  ): Promise<T[][]> {
    const contestants = [[this.ours, ["/ec/"]] as const, ...others.map((copies) => [this.plain, copies] as const)];
    const taken = contestants.map((): T[] => []);
    for (let round = 0; round < rounds; round++) {
      const turns = contestants.map(
        ([page, bases], index) =>
          async () =>
            void taken[index]!.push(await read(page, bases, round)),
      );
      for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
    }
    return taken;
  }

  /** The megabytes that come to the client while `action` runs. */
  async megabytesDuring(action: () => Promise<void>): Promise<number> {
    const log = await requestsDuring(this.world, action);
    const own = log.filter((request) => request.from === "client" && isOfReads(request));
    return own.reduce((sum, { bytes }) => sum + bytes, 0) / 1e6;
  }
}

/** The values of one name in the rounds of two contestants. */
export function valuesOf<Name extends string>(
  taken: readonly (readonly Readonly<Record<Name, number>>[])[],
  name: Name,
): [number[], number[]] {
  return taken.map((rounds) => rounds.map((round) => round[name])) as [number[], number[]];
}

/** Medians of milliseconds: `mine / theirs = ratio`. */
export function besideMs(mine: readonly number[], theirs: readonly number[]): string {
  const [own, other] = [mine, theirs].map((values) => summarize(values).median) as [number, number];
  return `${own.toFixed(0)} / ${other.toFixed(0)} = ${(own / other).toFixed(2)}`;
}

/** Medians of megabytes, likewise. */
export function besideMegabytes(mine: readonly number[], theirs: readonly number[]): string {
  const [own, other] = [mine, theirs].map((values) => summarize(values).median) as [number, number];
  const digits = own < 10 ? 2 : 1;
  return `${own.toFixed(digits)} / ${other.toFixed(digits)} MB = ${(own / other).toFixed(2)}`;
}

/** A page of the app with its service worker, in a context of its own. */
async function openOurs(world: LocalWorld, browser: Browser): Promise<AppPage> {
  const page = await openBarePage(browser, world.app);
  await takeServiceWorker(page);
  return page;
}
