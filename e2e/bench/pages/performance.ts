/**
 * docs/explanation/performance.md: uncached reads over the reader's own line, which all transfers share, beside one
 * copy and two copies with failover. One browser asks the contestants in turn.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { describeMachine } from "@agarose/dev-world/machine";
import { medianRatio, summarize, table } from "@agarose/dev-world/statistics";
import { seededRandom } from "@agarose/solver/random";
import type { Bench, BenchOptions } from "../bench.ts";
import type { AppPage } from "../../fixtures/app-page.ts";
import { chromiumVersion } from "../lib/browser.ts";
import { besideMegabytes, besideMs, Contest, inContest, POP, valuesOf } from "./contest.ts";

/** Megabits per second of the line; 0 is unlimited. */
const LINES_MBIT = [20, 50, 100, 200, 1000, 0];
/** The line of the other tables. */
const USUAL_MBIT = 100;
const CODES = ["auto", { k: 9, m: 3 }] as const;
const SIZES = { "1 MB": 1_000_000, "6 MB": 6_000_000, "40 MB": 40_000_000 };
const LARGE = "40 MB";
/** Files that are read once, so that each read needs a plan. */
const FIRST = { "100 kB": 100_000, "1 MB": 1_000_000 };
type FirstSize = keyof typeof FIRST;
const ROUNDS = 9;
/** Of seeks and of whole files that take less than a second, whose times spread most. */
const SHORT_ROUNDS = 21;
const SEEKS = 30;
const SEEK_MS = 100;
/** Of long reads, of all seeks that are given up, and of the reads whose bytes are counted. */
const FEW_ROUNDS = 3;
const SEED = 1;

export const performancePage: Bench = {
  name: "performance",
  page: "explanation/performance.md",
  title: "Measured",
  async run(options) {
    const [auto, nineThree] = CODES;
    const byLine: string[][] = [];
    const bytes: string[][] = [];
    const aborts: string[][] = [];
    const failures: string[][] = [];
    const byCode: string[][] = [];
    await inContest({ code: auto }, async (contest) => {
      const first = (LINES_MBIT.length + 2) * ROUNDS + (LINES_MBIT.length + 1) * FEW_ROUNDS;
      const files = await SingleFiles.put(contest, options, first);
      for (const mbit of LINES_MBIT) {
        const line = await contest.throttle(mbit);
        const cells = await files.compare(line);
        byLine.push([line, ...cells]);
        bytes.push([line, ...(await files.bytes())]);
        aborts.push([line, ...(await files.giveUp())]);
        if (mbit === USUAL_MBIT) byCode.push(["`auto`", ...cells]);
      }
      const usual = await contest.throttle(USUAL_MBIT);
      failures.push(["healthy", ...(await files.times())]);
      await contest.world.region(contest.regions[0]).down();
      failures.push(["the nearest region is down", ...(await files.times())]);
      bytes.push([`${usual}, the nearest region is down`, ...(await files.bytes())]);
    });
    await inContest({ code: nineThree }, async (contest) => {
      const files = await SingleFiles.put(contest, options, ROUNDS);
      await contest.throttle(USUAL_MBIT);
      byCode.push(["9+3", ...(await files.compare("9+3"))]);
    });
    const sizes = [...Object.keys(FIRST).map((size) => `${size}, first read`), ...Object.keys(SIZES)];
    const columns = ["first byte of a seek", ...sizes];
    return [
      `Milliseconds until the last byte, or until the first one of a seek: medians of ${ROUNDS} rounds, or of ${SHORT_ROUNDS} for`,
      `seeks, 1 MB and 6 MB, in which the contestants take turns. Chromium is beside the PoP \`${POP}\` of the world`,
      "`continental`: six providers of one continent, whose transfers have 200 Mbit/s each. The developer tools of the browser",
      "are closed, because their log would slow down Agarose, which sends more requests. No PoP caches anything. A first read",
      "needs a plan, and the other columns read one file again and again, so that the service worker usually has its plan.",
      "Cells have Agarose, one copy in the nearest region, and their ratio with its 95% interval (bootstrap). Two copies read",
      "like one while nothing fails.",
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
      `At ${USUAL_MBIT} Mbit/s, 40 MB in ${FEW_ROUNDS} rounds. With two copies, the page requests from the second region when the first`,
      "one fails.",
      "",
      table(["", "first byte of a seek: Agarose, one copy, two copies", ...sizes], failures),
      "",
      "### Bytes",
      "",
      `The bytes of all responses for each byte of the file: medians of ${FEW_ROUNDS} rounds.`,
      "",
      table(["line", "100 kB", ...Object.keys(SIZES)], bytes),
      "",
      "### Abandoned seeks",
      "",
      `The bytes of ${SEEKS} seeks in 40 MB that the page gives up after ${SEEK_MS} ms each, and the milliseconds of the 100 kB that it`,
      `reads next: medians of ${FEW_ROUNDS} rounds.`,
      "",
      table(["line", "bytes", "100 kB after"], aborts),
      "",
      describeMachine(await chromiumVersion()),
    ].join("\n");
  },
};

/** Reads of single files, which take turns. */
class SingleFiles {
  readonly #contest: Contest;
  readonly #options: BenchOptions;
  readonly #firstRead: Record<FirstSize, number> = { "100 kB": 0, "1 MB": 0 };
  #left = 0;

  /** Stores the files, of which `count` of each size are for first reads. */
  static async put(contest: Contest, options: BenchOptions, count: number): Promise<SingleFiles> {
    const sizes = Object.entries(SIZES).map(([size, bytes]) => [keyOf(size), bytes] as const);
    const first = Object.entries(FIRST).flatMap(([size, bytes]) =>
      Array.from({ length: count }, (_, index) => [firstKey(size, index), bytes] as const),
    );
    await contest.put(new Map([...sizes, ...first].map(([key, bytes]) => [key, randomBytes(bytes)])));
    return new SingleFiles(contest, options);
  }

  private constructor(contest: Contest, options: BenchOptions) {
    this.#contest = contest;
    this.#options = options;
  }

  get #rounds(): number {
    return this.#options.quick ? 3 : ROUNDS;
  }

  /** Agarose beside one copy: cells of the tables by line and by code. */
  async compare(name: string): Promise<string[]> {
    const copy = this.#contest.copies.slice(0, 1);
    const taken = await this.#firsts([copy]);
    for (const [size, bytes] of Object.entries(SIZES)) {
      const isLarge = size === LARGE;
      if (isLarge && this.#options.quick) continue;
      const rounds = isLarge || this.#options.quick ? this.#rounds : SHORT_ROUNDS;
      taken.push(
        await this.#contest.takeTurns(rounds, [copy], (page, bases) => lastByteMs(page, bases, keyOf(size), bytes)),
      );
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
    const others = [this.#contest.copies.slice(0, 1), this.#contest.copies];
    const taken = await this.#firsts(others);
    for (const [size, bytes] of Object.entries(SIZES)) {
      const read = (page: AppPage, bases: readonly string[]) => lastByteMs(page, bases, keyOf(size), bytes);
      taken.push(await this.#contest.takeTurns(size === LARGE ? FEW_ROUNDS : this.#rounds, others, read));
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

  /** The bytes that come for each byte of a file. */
  async bytes(): Promise<string[]> {
    const cells: string[] = [];
    for (const [size, bytes] of Object.entries({ "100 kB": FIRST["100 kB"], ...SIZES })) {
      const taken = await this.#contest.takeTurns(this.#options.quick ? 1 : FEW_ROUNDS, [], async (page, bases) => {
        const key = size === "100 kB" ? firstKey(size, this.#firstRead[size]++) : keyOf(size);
        return this.#contest.megabytesDuring(async () => {
          const ms = await lastByteMs(page, bases, key, bytes);
          if (!Number.isFinite(ms)) throw new Error(`${key}: a read failed`);
        });
      });
      cells.push(((summarize(taken[0]!).median * 1e6) / bytes).toFixed(2));
    }
    this.#options.progress(`bytes ${cells.join(", ")}`);
    return cells;
  }

  /** Bytes of seeks that are given up, and the time of the next range: Agarose beside one copy. */
  async giveUp(): Promise<[string, string]> {
    const copies = this.#contest.copies.slice(0, 1);
    const rounds = this.#options.quick ? 1 : FEW_ROUNDS;
    const taken = await this.#contest.takeTurns(rounds, [copies], async (page, bases, round) => {
      // Blocks of a small range stay in the service worker's memory.
      const next = startOf(SEEKS - 1 - this.#left - round) + 400_000;
      let ms = 0;
      const megabytes = await this.#contest.megabytesDuring(async () => {
        for (let seek = 0; seek < SEEKS; seek++) await leave(page, `${bases[0]}${keyOf(LARGE)}`, startOf(seek));
        ms = await lastByteMs(page, bases, keyOf(LARGE), FIRST["100 kB"], next);
        await sleep(500);
      });
      return { ms, megabytes };
    });
    this.#left += FEW_ROUNDS;
    const cells: [string, string] = [
      besideMegabytes(...valuesOf(taken, "megabytes")),
      besideMs(...valuesOf(taken, "ms")),
    ];
    this.#options.progress(`given up ${cells.join(", ")}`);
    return cells;
  }

  /** Seeks, and first reads of each size. */
  async #firsts(others: readonly (readonly string[])[]): Promise<number[][][]> {
    const rounds = this.#options.quick ? this.#rounds : SHORT_ROUNDS;
    const taken = [
      await this.#contest.takeTurns(rounds, others, (page, bases, round) =>
        firstByteMs(page, bases, keyOf(LARGE), startOf(round)),
      ),
    ];
    for (const size of Object.keys(FIRST) as FirstSize[]) {
      const from = this.#firstRead[size];
      this.#firstRead[size] += this.#rounds;
      taken.push(
        await this.#contest.takeTurns(this.#rounds, others, (page, bases, round) =>
          lastByteMs(page, bases, firstKey(size, from + round), FIRST[size]),
        ),
      );
    }
    return taken;
  }
}

function firstKey(size: string, index: number): string {
  return `first-${keyOf(size)}-${index}`;
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
