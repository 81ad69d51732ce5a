/** docs/explanation/performance.md: pages of many files at once, beside one copy. One browser asks them in turn. */
import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { describeMachine } from "@agarose/dev-world/machine";
import { table } from "@agarose/dev-world/statistics";
import type { Bench, BenchOptions } from "../bench.ts";
import type { AppPage } from "../../fixtures/app-page.ts";
import { chromiumVersion } from "../lib/browser.ts";
import { putWhole } from "../s3/sdk-put.ts";
import { besideMegabytes, besideMs, inContest, valuesOf, type Contest } from "./contest.ts";

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
      "last byte, and the bytes of all responses, beside one copy. Uncached: no PoP has any of the files. Cached: the PoP has",
      "kept those that its policy chose. The service worker of the visitor is new and has no plans yet, but another visitor",
      "has loaded the page less than a minute before.",
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
  await inContest({ code: "auto", cacheBytes: PAGE_CACHE_BYTES }, async (contest) => {
    const page = new ManyFiles(contest, options, files);
    const sets = Array.from({ length: PAGE_LINES.length * rounds }, (_, index) => `page-${index}/`);
    await page.store(sets, isText);
    for (const cache of ["uncached", "cached"]) {
      for (const [index, mbit] of PAGE_LINES.entries()) {
        const line = await contest.throttle(mbit);
        rows.push([line, cache, ...(await page.read(sets.slice(index * rounds, (index + 1) * rounds)))]);
      }
      if (cache === "uncached") await page.cache(sets);
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

/** A page that requests all of its files at once. */
class ManyFiles {
  readonly #contest: Contest;
  readonly #options: BenchOptions;
  readonly #files: ReadonlyMap<string, Uint8Array>;
  /** Another visitor, who comes just before. */
  #before: AppPage | undefined;

  constructor(contest: Contest, options: BenchOptions, files: ReadonlyMap<string, Uint8Array>) {
    this.#contest = contest;
    this.#options = options;
    this.#files = files;
  }

  /** Stores the files under each of `folders`, and one copy, which is text as a server with gzip sends it or not. */
  async store(folders: readonly string[], isText: boolean): Promise<void> {
    const { world, regions } = this.#contest;
    for (const folder of folders) {
      for (const [name, content] of this.#files) await world.put(`${folder}${name}`, content);
    }
    const sent = [...this.#files].map(
      ([name, content]) => [name, isText ? gzipSync(content, { level: 6 }) : content] as const,
    );
    await putWhole(world, regions[0], new Map(sent), isText ? { ContentEncoding: "gzip" } : {});
  }

  /** Agarose beside one copy: milliseconds and bytes of the page, from another one of `folders` each time. */
  async read(folders: readonly string[]): Promise<[string, string]> {
    const contest = this.#contest;
    const copies = contest.copies.slice(0, 1);
    const taken = await contest.takeTurns(folders.length, [copies], async (page, [base], round) => {
      const isOurs = page === contest.ours;
      const urls = this.#urls(isOurs ? `${base}${folders[round]}` : base!);
      if (this.#before && isOurs) {
        await pageMs(this.#before, urls);
        await sleep(SETTLE_MS);
      }
      let ms = 0;
      const megabytes = await contest.megabytesDuring(async () => void (ms = await pageMs(page, urls)));
      if (isOurs) await sleep(SETTLE_MS);
      return { ms, megabytes };
    });
    const cells: [string, string] = [
      besideMs(...valuesOf(taken, "ms")),
      besideMegabytes(...valuesOf(taken, "megabytes")),
    ];
    this.#options.progress(`page ${cells.join(", ")}`);
    return cells;
  }

  /** Has the PoP cache the page of `folders` that was read before. From then on, each page has two new visitors. */
  async cache(folders: readonly string[]): Promise<void> {
    const contest = this.#contest;
    for (const folder of folders) await pageMs(contest.ours, this.#urls(`/ec/${folder}`));
    for (let period = 0; period < 2; period++) await contest.world.cron();
    this.#before = await contest.visitor();
    contest.ours = await contest.visitor();
  }

  #urls(base: string): string[] {
    return [...this.#files.keys()].map((name) => base + name);
  }
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
