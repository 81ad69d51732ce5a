/**
 * docs/explanation/performance.md: uncached reads over the reader's own line, which all transfers share, beside one
 * copy and two copies with failover. One browser asks the contestants in turn.
 */
import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Browser } from "@playwright/test";
import { LocalWorld } from "@agarose/dev-world/client";
import { describeMachine } from "@agarose/dev-world/machine";
import { medianRatio, summarize, table } from "@agarose/dev-world/statistics";
import { seededRandom } from "@agarose/solver/random";
import type { Bench, BenchOptions } from "../bench.ts";
import type { AppPage } from "../../fixtures/app-page.ts";
import { takeServiceWorker } from "../../fixtures/app.ts";
import { isOfReads, requestsDuring, type LoggedRequest } from "../../fixtures/requests-during.ts";
import { openBarePage } from "../lib/bare-page.ts";
import { chromiumVersion, startBrowser } from "../lib/browser.ts";
import { putWhole } from "../s3/sdk-put.ts";

const CONTINENTAL = fileURLToPath(import.meta.resolve("@agarose/solver/scenarios/continental.json"));
/** The PoP beside the browser. */
const POP = "fra";
/** Megabits per second of the line; 0 is unlimited. */
const LINES_MBIT = [20, 50, 100, 200, 1000, 0];
/** The line of the other tables. */
const USUAL_MBIT = 100;
const CODES = ["auto", { k: 9, m: 3 }] as const;
const SIZES = { "1 MB": 1_000_000, "6 MB": 6_000_000, "40 MB": 40_000_000 };
const LARGE = "40 MB";
const SMALL_BYTES = 100_000;
const ROUNDS = 9;
/** Of whole files that take less than a second, whose times spread most. */
const SHORT_ROUNDS = 21;
const SEEKS = 30;
const SEEK_MS = 100;
/** Of all seeks that are given up, on each line. */
const LEFT_ROUNDS = 3;
const SEED = 1;
/** Folder of the text: the minified modules of Prettier, which is MIT-licensed and a dependency of this repository. */
const TEXT = join(dirname(fileURLToPath(import.meta.resolve("prettier"))), "plugins");
/** As many tiles as a viewer of maps or of large images requests at once. */
const TILES = 304;
const TILE_BYTES = 12_000;
/** Lines of the pages of many files. */
const PAGE_LINES = [20, 100];
const PAGE_CACHE_BYTES = 64e6;
/** Each reads files of its own. */
const PAGE_ROUNDS = 5;
/** After a page, the PoP looks its keys up in a majority of the regions, which must not hold up the next page. */
const SETTLE_MS = 5_000;

export const performancePage: Bench = {
  name: "performance",
  page: "explanation/performance.md",
  title: "Measured",
  async run(options) {
    const [auto, nineThree] = CODES;
    const byLine: string[][] = [];
    const aborts: string[][] = [];
    const failures: string[][] = [];
    const byCode: string[][] = [];
    const files = (LINES_MBIT.length + 2) * ROUNDS;
    await inWorld(auto, { ...options, files }, async (contest) => {
      for (const mbit of LINES_MBIT) {
        await contest.world.client.throttle(mbit);
        const line = mbit === 0 ? "unlimited" : `${mbit} Mbit/s`;
        const cells = await contest.compare(line);
        byLine.push([line, ...cells]);
        aborts.push([line, ...(await contest.giveUp())]);
        if (mbit === USUAL_MBIT) byCode.push(["`auto`", ...cells]);
      }
      await contest.world.client.throttle(USUAL_MBIT);
      failures.push(["healthy", ...(await contest.times())]);
      await contest.world.region(contest.nearest).down();
      failures.push(["the nearest region is down", ...(await contest.times())]);
    });
    await inWorld(nineThree, { ...options, files: ROUNDS }, async (contest) => {
      await contest.world.client.throttle(USUAL_MBIT);
      byCode.push(["9+3", ...(await contest.compare("9+3"))]);
    });
    const columns = ["first byte of a seek", "100 kB", ...Object.keys(SIZES)];
    return [
      `Milliseconds, medians of ${ROUNDS} rounds, and of ${SHORT_ROUNDS} for 1 and 6 MB, in which the contestants take turns.`,
      `Chromium is beside the PoP \`${POP}\` of the world \`continental\`: six providers of one continent, whose transfers have`,
      "200 Mbit/s each. No tool logs its requests, which would slow down many requests more than one. Nothing is cached, and",
      "each read of 100 kB is the first one of its file. Cells have Agarose, one copy in the nearest region, and their ratio",
      "with its 95% interval (bootstrap). Two copies read like one while nothing fails.",
      "",
      "### By line",
      "",
      "`put` with `code: auto`, its default. All downloads of the reader share the line.",
      "",
      table(["line", ...columns], byLine),
      "",
      "### By code",
      "",
      `At ${USUAL_MBIT} Mbit/s.`,
      "",
      table(["code", ...columns], byCode),
      "",
      "### When the nearest region is down",
      "",
      `At ${USUAL_MBIT} Mbit/s. With two copies, the page requests from the second region when the first one fails.`,
      "",
      table(["", "first byte of a seek: Agarose, one copy, two copies", "100 kB", "1 MB", "6 MB"], failures),
      "",
      "### Abandoned seeks",
      "",
      `The bytes of ${SEEKS} seeks in 40 MB that the page gives up after ${SEEK_MS} ms each, and the milliseconds of the 100 kB that it`,
      `reads next: medians of ${LEFT_ROUNDS} rounds.`,
      "",
      table(["line", "bytes", "100 kB after"], aborts),
      "",
      describeMachine(await chromiumVersion()),
    ].join("\n");
  },
};

export const manyFiles: Bench = {
  name: "many-files",
  page: "explanation/performance.md",
  title: "Pages of many files",
  async run(options) {
    const text = await textFiles();
    const textRows = await pageRows(options, text, true);
    const tileRows = await pageRows(options, tileFiles(), false);
    return [
      `Medians of ${PAGE_ROUNDS} rounds in the same world, in which a page requests all of its files at once: the milliseconds to the`,
      "last byte, and the bytes of all responses, beside one copy. Nothing is cached, or the PoP has cached what it chose, and",
      "a visitor comes for the first time, less than a minute after another one.",
      "",
      "### Text",
      "",
      `${text.size} files (${sizeOf(text)} MB) of JavaScript, which \`put\` compresses by default, beside a copy by \`gzip -6\`.`,
      "",
      table(["line", "cache", "time", "bytes"], textRows),
      "",
      "### Small files",
      "",
      `${TILES} files of ${TILE_BYTES / 1000} kB that do not compress, as a viewer of maps or of large images requests.`,
      "",
      table(["line", "cache", "time", "bytes"], tileRows),
      "",
      describeMachine(await chromiumVersion()),
    ].join("\n");
  },
};

/** Rows of a page of `files` by line, uncached and cached. */
async function pageRows(
  options: BenchOptions,
  files: ReadonlyMap<string, Uint8Array>,
  isText: boolean,
): Promise<string[][]> {
  const rows: string[][] = [];
  const rounds = options.quick ? 1 : PAGE_ROUNDS;
  await inWorld(CODES[0], { ...options, files: 0, cacheBytes: PAGE_CACHE_BYTES }, async (contest) => {
    const sets = Array.from({ length: PAGE_LINES.length * rounds }, (_, index) => `page-${index}/`);
    await contest.storePage(sets, files, isText);
    for (const cache of ["uncached", "cached"]) {
      for (const [index, mbit] of PAGE_LINES.entries()) {
        await contest.world.client.throttle(mbit);
        const folders = sets.slice(index * rounds, (index + 1) * rounds);
        rows.push([`${mbit} Mbit/s`, cache, ...(await contest.page(folders))]);
      }
      if (cache === "uncached") await contest.cachePage(sets);
    }
  });
  return rows;
}

async function textFiles(): Promise<ReadonlyMap<string, Uint8Array>> {
  const names = (await readdir(TEXT)).filter((name) => name.endsWith(".mjs"));
  return new Map(await Promise.all(names.map(async (name) => [name, await readFile(join(TEXT, name))] as const)));
}

function tileFiles(): ReadonlyMap<string, Uint8Array> {
  return new Map(Array.from({ length: TILES }, (_, index) => [`tile-${index}`, randomBytes(TILE_BYTES)]));
}

/** Megabytes of `files`. */
function sizeOf(files: ReadonlyMap<string, Uint8Array>): string {
  return ([...files.values()].reduce((sum, { length }) => sum + length, 0) / 1e6).toFixed(1);
}

async function inWorld(
  code: (typeof CODES)[number],
  options: ContestOptions,
  measure: (contest: Contest) => Promise<void>,
): Promise<void> {
  const { cacheBytes } = options;
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
    await measure(await Contest.open(world, browser, options));
  } finally {
    await browser.close();
    await world.stop();
  }
}

interface ContestOptions extends BenchOptions {
  /** How many of 100 kB. */
  readonly files: number;
  /** Of each PoP. Default: that of the world. */
  readonly cacheBytes?: number;
}

/** Agarose and copies of the same objects, read by two pages of one browser. */
class Contest {
  readonly world: LocalWorld;
  readonly nearest: string;
  readonly #options: BenchOptions;
  readonly #browser: Browser;
  #ours: AppPage;
  readonly #plain: AppPage;
  /** Addresses of the copies, nearest first: `<copy><key>`. */
  readonly #copies: readonly string[];
  /** Another visitor, who comes just before. */
  #before: AppPage | undefined;
  /** Names of the files of the page. */
  #names: readonly string[] = [];
  #smallRead = 0;
  #left = 0;

  static async open(world: LocalWorld, browser: Browser, options: ContestOptions): Promise<Contest> {
    const ours = await openOurs(world, browser);
    // Without a service worker, and from the network, because other documents may not fetch from the loopback address.
    const plain = await openBarePage(browser, `${world.app}agarose.json`);
    const [nearest, second] = world.regions.map(({ name }) => name) as [string, string];
    const urls = await plain.evaluate(
      async (names) => {
        const { regions } = await (await fetch("/agarose.json")).json();
        return names.map((name) => `${regions.find((region: { name: string }) => region.name === name).url}/`);
      },
      [nearest, second],
    );
    const contest = new Contest(world, nearest, options, browser, ours, plain, urls);
    const sizes = Object.entries(SIZES).map(([size, bytes]) => [keyOf(size), bytes] as const);
    const small = Array.from({ length: options.files }, (_, index) => [`small-${index}`, SMALL_BYTES] as const);
    const objects = new Map([...sizes, ...small].map(([key, bytes]) => [key, randomBytes(bytes)]));
    for (const [key, content] of objects) await world.put(key, content);
    for (const region of [nearest, second]) await putWhole(world, region, objects);
    return contest;
  }

  private constructor(
    world: LocalWorld,
    nearest: string,
    options: BenchOptions,
    browser: Browser,
    ours: AppPage,
    plain: AppPage,
    copies: readonly string[],
  ) {
    this.world = world;
    this.nearest = nearest;
    this.#options = options;
    this.#browser = browser;
    this.#ours = ours;
    this.#plain = plain;
    this.#copies = copies;
  }

  get #rounds(): number {
    return this.#options.quick ? 3 : ROUNDS;
  }

  /** Agarose beside one copy: cells of the tables by line and by code. */
  async compare(name: string): Promise<string[]> {
    const copy = this.#copies.slice(0, 1);
    const taken = [await this.#seeks([copy]), await this.#small([copy])];
    for (const [size, bytes] of Object.entries(SIZES)) {
      const isLarge = size === LARGE;
      if (isLarge && this.#options.quick) continue;
      const rounds = isLarge || this.#options.quick ? this.#rounds : SHORT_ROUNDS;
      taken.push(await this.#taken(rounds, [copy], (page, bases) => lastByteMs(page, bases, keyOf(size), bytes)));
    }
    if (!taken.flat(2).every(Number.isFinite)) throw new Error(`${name}: a read failed`);
    const cells = taken.map(([own, other]) => {
      const [low, high] = medianRatio(own!, other!, seededRandom(SEED).next);
      const [mine, theirs] = [own!, other!].map((values) => summarize(values).median) as [number, number];
      const ratio = `${(mine / theirs).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`;
      return `${mine.toFixed(0)} / ${theirs.toFixed(0)} = ${ratio}`;
    });
    this.#options.progress(`${name}: ${cells.join(", ")}`);
    return cells;
  }

  /** Medians of Agarose, one copy and two copies, or how many of their reads failed. */
  async times(): Promise<string[]> {
    const others = [this.#copies.slice(0, 1), this.#copies];
    const taken = [await this.#seeks(others), await this.#small(others)];
    for (const size of ["1 MB", "6 MB"] as const) {
      const read = (page: AppPage, bases: readonly string[]) => lastByteMs(page, bases, keyOf(size), SIZES[size]);
      taken.push(await this.#taken(this.#rounds, others, read));
    }
    const cells = taken.map((contestants) =>
      contestants
        .map((values) => {
          const failed = values.filter((ms) => ms === Number.POSITIVE_INFINITY).length;
          return failed > 0 ? `${failed} of ${values.length} fail` : summarize(values).median.toFixed(0);
        })
        .join(" / "),
    );
    this.#options.progress(cells.join(", "));
    return cells;
  }

  /** Bytes of seeks that are given up, and the time of the next range: Agarose beside one copy. */
  async giveUp(): Promise<[string, string]> {
    const brought = new Map([this.#ours, this.#plain].map((page) => [page, [] as number[]]));
    const [copy] = this.#copies;
    const taken = await this.#taken(this.#options.quick ? 1 : LEFT_ROUNDS, [[copy!]], async (page, bases, round) => {
      // Blocks of a small range stay in the service worker's memory.
      const next = startOf(SEEKS - 1 - this.#left - round) + 400_000;
      let ms = 0;
      const log = await requestsDuring(this.world, async () => {
        for (let seek = 0; seek < SEEKS; seek++) await leave(page, `${bases[0]}${keyOf(LARGE)}`, startOf(seek));
        ms = await lastByteMs(page, bases, keyOf(LARGE), SMALL_BYTES, next);
        await sleep(500);
      });
      brought.get(page)!.push(bytesOf(log));
      return ms;
    });
    this.#left += LEFT_ROUNDS;
    const cells = besideCopy(taken, brought);
    this.#options.progress(`given up ${cells.join(", ")}`);
    return [cells[1], cells[0]];
  }

  /** Stores `files` under each of `folders`, and one copy, which is text as a server with gzip sends it or not. */
  async storePage(folders: readonly string[], files: ReadonlyMap<string, Uint8Array>, isText: boolean): Promise<void> {
    for (const folder of folders) {
      for (const [name, content] of files) await this.world.put(`${folder}${name}`, content);
    }
    const sent = [...files].map(
      ([name, content]) => [name, isText ? gzipSync(content, { level: 6 }) : content] as const,
    );
    await putWhole(this.world, this.nearest, new Map(sent), isText ? { ContentEncoding: "gzip" } : {});
    this.#names = [...files.keys()];
  }

  /** Agarose beside one copy: milliseconds and bytes of the page, from another one of `folders` each time. */
  async page(folders: readonly string[]): Promise<[string, string]> {
    const brought = new Map([this.#ours, this.#plain].map((page) => [page, [] as number[]]));
    const [copy] = this.#copies;
    const taken = await this.#taken(folders.length, [[copy!]], async (page, _bases, round) => {
      const base = page === this.#ours ? `/ec/${folders[round]}` : copy!;
      const urls = this.#names.map((name) => base + name);
      if (this.#before && page === this.#ours) {
        await pageMs(this.#before, urls);
        await sleep(SETTLE_MS);
      }
      let ms = 0;
      const log = await requestsDuring(this.world, async () => void (ms = await pageMs(page, urls)));
      brought.get(page)!.push(bytesOf(log));
      if (page === this.#ours) await sleep(SETTLE_MS);
      return ms;
    });
    const cells = besideCopy(taken, brought);
    this.#options.progress(`page ${cells.join(", ")}`);
    return cells;
  }

  /** Has the PoP cache the page of `folders` that was read before. From then on, each page has two new visitors. */
  async cachePage(folders: readonly string[]): Promise<void> {
    for (const folder of folders)
      await pageMs(
        this.#ours,
        this.#names.map((name) => `/ec/${folder}${name}`),
      );
    for (let period = 0; period < 2; period++) await this.world.cron();
    this.#before = await openOurs(this.world, this.#browser);
    this.#ours = await openOurs(this.world, this.#browser);
  }

  #seeks(others: readonly (readonly string[])[]): Promise<number[][]> {
    return this.#taken(this.#rounds, others, (page, bases, round) =>
      firstByteMs(page, bases, keyOf(LARGE), startOf(round)),
    );
  }

  /** Each round reads another file, because the service worker has small ones in memory. */
  #small(others: readonly (readonly string[])[]): Promise<number[][]> {
    const first = this.#smallRead;
    this.#smallRead += this.#rounds;
    return this.#taken(this.#rounds, others, (page, bases, round) =>
      lastByteMs(page, bases, `small-${first + round}`, SMALL_BYTES),
    );
  }

  /** Milliseconds of every round by contestant: Agarose, and then each of `others`, by the copies that it has. */
  async #taken(
    rounds: number,
    others: readonly (readonly string[])[],
    read: (page: AppPage, bases: readonly string[], round: number) => Promise<number>,
  ): Promise<number[][]> {
    const contestants = [[this.#ours, ["/ec/"]] as const, ...others.map((copies) => [this.#plain, copies] as const)];
    const taken = contestants.map((): number[] => []);
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
}

/** Megabytes that came to the client. */
function bytesOf(log: readonly LoggedRequest[]): number {
  const own = log.filter((request) => request.from === "client" && isOfReads(request));
  return own.reduce((sum, { bytes }) => sum + bytes, 0) / 1e6;
}

/** Medians of milliseconds and of megabytes: Agarose beside one copy. */
function besideCopy(taken: readonly number[][], brought: ReadonlyMap<AppPage, number[]>): [string, string] {
  const [ms, otherMs] = taken.map((values) => summarize(values).median) as [number, number];
  const [bytes, otherBytes] = [...brought.values()].map((values) => summarize(values).median) as [number, number];
  return [
    `${ms.toFixed(0)} / ${otherMs.toFixed(0)} = ${(ms / otherMs).toFixed(2)}`,
    `${bytes.toFixed(bytes < 10 ? 2 : 1)} / ${otherBytes.toFixed(bytes < 10 ? 2 : 1)} MB = ${(bytes / otherBytes).toFixed(2)}`,
  ];
}

/** A page of the app with its service worker, in a context of its own. */
async function openOurs(world: LocalWorld, browser: Browser): Promise<AppPage> {
  const page = await openBarePage(browser, world.app);
  await takeServiceWorker(page);
  return page;
}

function keyOf(size: string): string {
  return size.replace(" ", "");
}

/** Where the seek number `index` goes. */
function startOf(index: number): number {
  return Math.floor((((index * 7) % SEEKS) / SEEKS) * SIZES[LARGE]) + 1_234;
}

/**
 * Milliseconds to the first bytes of a range without an end, which the page then leaves, out of the first of `bases`
 * that has it. Infinity where none does.
 */
function firstByteMs(page: AppPage, bases: readonly string[], key: string, start: number): Promise<number> {
  return page.evaluate(
    async ([froms, name, at]) => {
      const startMs = performance.now();
      const headers = { range: `bytes=${at}-` };
      for (const from of froms) {
        const abort = new AbortController();
        const read = async (): Promise<boolean> => {
          const response = await fetch(from + name, { headers, cache: "no-store", signal: abort.signal });
          return response.ok && !(await response.body!.getReader().read()).done;
        };
        if (!(await read().catch(() => false))) continue;
        const ms = performance.now() - startMs;
        abort.abort();
        await new Promise((resolve) => setTimeout(resolve, 300));
        return ms;
      }
      return Number.POSITIVE_INFINITY;
    },
    [bases, key, start] as const,
  );
}

/** Asks for a range without an end, and leaves. */
function leave(page: AppPage, url: string, start: number): Promise<void> {
  return page.evaluate(
    async ([from, at, ms]) => {
      const abort = new AbortController();
      const headers = { range: `bytes=${at}-` };
      const read = fetch(from, { headers, cache: "no-store", signal: abort.signal })
        .then((response) => response.arrayBuffer())
        .catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, ms));
      abort.abort();
      await read;
    },
    [url, start, SEEK_MS] as const,
  );
}

/**
 * Milliseconds to the last of so many bytes, from `start` on, out of the first of `bases` that has them. Infinity where
 * none does.
 */
function lastByteMs(
  page: AppPage,
  bases: readonly string[],
  key: string,
  bytes: number,
  start?: number,
): Promise<number> {
  return page.evaluate(
    async ([froms, name, length, at]) => {
      const startMs = performance.now();
      const headers: Record<string, string> = at === undefined ? {} : { range: `bytes=${at}-${at + length - 1}` };
      for (const from of froms) {
        const read = async (): Promise<number> => {
          const response = await fetch(from + name, { headers, cache: "no-store" });
          return response.ok ? (await response.arrayBuffer()).byteLength : 0;
        };
        if ((await read().catch(() => 0)) === length) return performance.now() - startMs;
      }
      return Number.POSITIVE_INFINITY;
    },
    [bases, key, bytes, start] as const,
  );
}

/** Milliseconds until all of `urls` are there, which are requested at once. */
function pageMs(page: AppPage, urls: readonly string[]): Promise<number> {
  return page.evaluate(async (all) => {
    const startMs = performance.now();
    await Promise.all(
      all.map(async (url) => {
        const response = await fetch(url, { cache: "no-store" });
        if (!response.ok) throw new Error(`${url}: ${await response.text()}`);
        await response.arrayBuffer();
      }),
    );
    return performance.now() - startMs;
  }, urls);
}
