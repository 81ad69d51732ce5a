/**
 * Reads over the reader's own line, which all transfers share: Agarose against one copy in the nearest region, asked
 * for in turn by one browser. Nothing is cached.
 */
import { randomBytes } from "node:crypto";
import type { Page } from "@playwright/test";
import { LocalWorld } from "@agarose/dev-world/client";
import { describeMachine } from "@agarose/dev-world/machine";
import { summarize, table } from "@agarose/dev-world/statistics";
import type { Bench, BenchOptions } from "../bench.ts";
import { openControlledApp } from "../../fixtures/app.ts";
import { requestsDuring } from "../../fixtures/requests-during.ts";
import { chromiumVersion, openPlainPage, startBrowser } from "../lib/browser.ts";
import { putWhole } from "../s3/sdk-put.ts";
import { CONTINENTAL, isOfReads, POP } from "./contest.ts";

/** Megabits per second of the line; 0 is unlimited. */
const LINES_MBIT = [20, 50, 100, 200, 1000, 0];
const SIZES = { "100 kB": 100_000, "1 MB": 1_000_000, "6 MB": 6_000_000, "40 MB": 40_000_000 };
const LARGE_BYTES = SIZES["40 MB"];
const ROUNDS = 7;
const SEEKS = 30;
const SEEK_MS = 100;

export const lines: Bench = {
  name: "lines",
  title: "Lines: reads over a line of 20 Mbit/s to unlimited",
  async run(options) {
    return [
      `Medians of ${ROUNDS} rounds (whole 40 MB: 2), in which the contestants take turns, Chromium beside the PoP \`${POP}\` in`,
      "the world `continental`, `code: auto`. The other contestant is one copy in the region nearest to the PoP, over the",
      "same links. All downloads of the client share its line; each transfer takes at most 200 Mbit/s. Nothing is cached.",
      "Seek: milliseconds to the first byte of `bytes=N-` of 40 MB. Sizes: milliseconds to the last byte. Each cell has",
      `ours, the copy's, and the ratio. Given up: the bytes that ${SEEKS} seeks bring which the page leaves after ${SEEK_MS} ms`,
      "each, and then the milliseconds of a range of 100 kB.",
      "",
      table(["line", "seek", ...Object.keys(SIZES), "given up", "100 kB after"], await measure(options)),
      "",
      describeMachine(await chromiumVersion()),
    ].join("\n");
  },
};

async function measure(options: BenchOptions): Promise<string[][]> {
  const world = await LocalWorld.start({ geography: CONTINENTAL, jitter: 0.1, mbit: 200, code: "auto" });
  const browser = await startBrowser();
  try {
    await world.client.near(POP);
    const objects = new Map(
      Object.entries(SIZES).map(([size, bytes]) => [size.replace(" ", ""), randomBytes(bytes)] as const),
    );
    for (const [key, content] of objects) await world.put(key, content);
    const nearest = world.regions[0]!.name;
    await putWhole(world, nearest, objects);
    const ours = await openControlledApp(await browser.browser.newContext(), world);
    const plain = await openPlainPage(await browser.browser.newContext(), world);
    const copy = await plain.evaluate(async (name) => {
      const { regions } = await (await fetch("/agarose.json")).json();
      return `${regions.find((region: { name: string }) => region.name === name).url}/`;
    }, nearest);
    const rows: string[][] = [];
    for (const mbit of LINES_MBIT) {
      await world.client.throttle(mbit);
      rows.push(await measureLine(mbit, { world, ours, plain, copy }, options));
    }
    return rows;
  } finally {
    await browser.close();
    await world.stop();
  }
}

interface Contestants {
  readonly world: LocalWorld;
  readonly ours: Page;
  readonly plain: Page;
  /** Address of the copy: `<copy><key>`. */
  readonly copy: string;
}

async function measureLine(mbit: number, contestants: Contestants, options: BenchOptions): Promise<string[]> {
  const { world, ours, plain, copy } = contestants;
  const name = mbit === 0 ? "unlimited" : `${mbit} Mbit/s`;
  const compare = async (rounds: number, read: (page: Page, base: string, round: number) => Promise<number>) => {
    const taken: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      const turns = [
        async () => void taken[0].push(await read(ours, "/ec/", round)),
        async () => void taken[1].push(await read(plain, copy, round)),
      ];
      for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
    }
    const [own, other] = taken.map((values) => summarize(values).median) as [number, number];
    return `${own.toFixed(0)} / ${other.toFixed(0)} = ${(own / other).toFixed(2)}`;
  };
  const rounds = options.quick ? 3 : ROUNDS;
  const cells = [await compare(rounds, (page, base, round) => firstByteMs(page, `${base}40MB`, startOf(round)))];
  options.progress(`${name} seek ${cells.at(-1)}`);
  for (const [size, bytes] of Object.entries(SIZES)) {
    if (options.quick && bytes === LARGE_BYTES) continue;
    const some = bytes === LARGE_BYTES ? 2 : rounds;
    cells.push(await compare(some, (page, base) => lastByteMs(page, base + size.replace(" ", ""), bytes)));
    options.progress(`${name} ${size} ${cells.at(-1)}`);
  }
  const brought: number[] = [];
  const after: number[] = [];
  for (const [page, base] of [
    [ours, "/ec/"],
    [plain, copy],
  ] as const) {
    const log = await requestsDuring(world, async () => {
      for (let seek = 0; seek < SEEKS; seek++) await giveUp(page, `${base}40MB`, startOf(seek));
      after.push(await lastByteMs(page, `${base}40MB`, 100_000, 20_000_000));
      await page.waitForTimeout(500);
    });
    const own = log.filter((request) => request.from === "client" && isOfReads(request));
    brought.push(own.reduce((sum, { bytes }) => sum + bytes, 0) / 1e6);
  }
  cells.push(`${brought[0]!.toFixed(1)} / ${brought[1]!.toFixed(1)} MB = ${(brought[0]! / brought[1]!).toFixed(2)}`);
  cells.push(`${after[0]!.toFixed(0)} / ${after[1]!.toFixed(0)} = ${(after[0]! / after[1]!).toFixed(2)}`);
  options.progress(`${name} given up ${cells.slice(-2).join(", ")}`);
  return [name, ...cells];
}

/** Where the seek number `index` goes. */
function startOf(index: number): number {
  return Math.floor((((index * 7) % SEEKS) / SEEKS) * LARGE_BYTES) + 1_234;
}

/** Milliseconds to the first bytes of a range without an end, which the page then leaves. */
function firstByteMs(page: Page, url: string, start: number): Promise<number> {
  return page.evaluate(
    async ([from, at]) => {
      const abort = new AbortController();
      const startMs = performance.now();
      const headers = { range: `bytes=${at}-` };
      const response = await fetch(from, { headers, cache: "no-store", signal: abort.signal });
      await response.body!.getReader().read();
      const ms = performance.now() - startMs;
      abort.abort();
      await new Promise((resolve) => setTimeout(resolve, 300));
      return ms;
    },
    [url, start] as const,
  );
}

/** Asks for a range without an end, and leaves. */
function giveUp(page: Page, url: string, start: number): Promise<void> {
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

/** Milliseconds to the last of so many bytes, from `start` on. */
function lastByteMs(page: Page, url: string, bytes: number, start?: number): Promise<number> {
  return page.evaluate(
    async ([from, length, at]) => {
      const startMs = performance.now();
      const headers: Record<string, string> = at === undefined ? {} : { range: `bytes=${at}-${at + length - 1}` };
      const response = await fetch(from, { headers, cache: "no-store" });
      const received = await response.arrayBuffer();
      if (received.byteLength !== length) throw new Error(`${from}: ${received.byteLength} of ${length} bytes`);
      return performance.now() - startMs;
    },
    [url, bytes, start] as const,
  );
}
