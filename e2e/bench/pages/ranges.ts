/**
 * Small ranges of a large object: Agarose against a range GET of one copy in the nearest region behind a CDN, over the
 * same links, taking turns in one run.
 */
import { randomBytes } from "node:crypto";
import type { Page } from "@playwright/test";
import { seededRandom } from "@agarose/solver/random";
import type { Bench, BenchOptions } from "../bench.ts";
import { summarize, table } from "@agarose/dev-world/statistics";
import { describeMachine } from "@agarose/dev-world/machine";
import { requestsDuring } from "../../fixtures/requests-during.ts";
import { chromiumVersion } from "../lib/browser.ts";
import { forgetPlans, isOfReads, LAYOUTS, POP, startContest, type Contest, type Layout } from "./contest.ts";

const OBJECT_BYTES = 20_000_000;
/** Of each size of range, and of chains. */
const ROUNDS = 15;
const RANGE_BYTES = [16 * 1024, 64 * 1024];
const CHAIN = 8;
/** Room for the whole object, and as much again. */
const CACHE_BYTES = 40_000_000;
const KEY = "bench/large";
/** Of the same length, and never cached. */
const KEY_UNCACHED = "bench/uncached";

export const ranges: Bench = {
  name: "ranges",
  title: "Ranges: 16 KiB and 64 KiB of 20 MB",
  async run(options) {
    const rows: string[][] = [];
    for (const layout of LAYOUTS) rows.push(...(await measure(layout, options)));
    return [
      `Milliseconds until the last byte, medians of ${ROUNDS} random ranges that the contestants ask for in turn, Chromium`,
      `beside the PoP \`${POP}\`. The other contestant asks for the same range of one copy in the region nearest to the PoP,`,
      "through a CDN Worker. First: the service worker has no plan. Next: it has one, as for all further ranges of a file.",
      "Cached: both hold the whole object; the CDN Worker reads all of it for a range. PoP alone: the same page without a",
      "service worker asks the same PoP for the same range at `/o/`. Chain: eight ranges of 16 KiB, each after the one",
      "before. Repeated: the same range once more. Down: the region nearest to the PoP does not answer, and nothing of the",
      "object is cached; the other contestant has no copy then. Requests and bytes are those of one range of ours, sent by",
      "the client, over all links. Most: the most requests of any range in the row.",
      "",
      table(
        ["world", "range", "Agarose", "one copy, CDN", "ratio", "PoP alone", "ratio", "requests", "most", "bytes"],
        rows,
      ),
      "",
      describeMachine(await chromiumVersion()),
    ].join("\n");
  },
};

interface Sample {
  readonly ms: number;
  readonly requests: number;
  readonly bytes: number;
}

async function measure(layout: Layout, options: BenchOptions): Promise<string[][]> {
  const rounds = options.quick ? 3 : ROUNDS;
  options.progress(`${layout.name}: upload`);
  const content = randomBytes(OBJECT_BYTES);
  const stored = new Map([KEY, KEY_UNCACHED].map((key) => [key, content]));
  const contest = await startContest(layout, stored, { cacheBytes: CACHE_BYTES });
  const random = seededRandom(7);
  const starts = (bytes: number, count: number): number[] =>
    Array.from({ length: count }, () => random.integer(OBJECT_BYTES - bytes));
  const rows: string[][] = [];
  const add = (what: string, own: readonly Sample[], ...others: readonly (readonly number[])[]): void => {
    const median = (values: readonly number[]): number => summarize(values).median;
    const ms = median(own.map((sample) => sample.ms));
    const against = [0, 1].flatMap((i) => {
      const other = others[i] ?? [];
      return other.length > 0 ? [median(other).toFixed(1), (ms / median(other)).toFixed(2)] : ["", ""];
    });
    const requests = own.map((sample) => sample.requests);
    const counts = [median(requests), Math.max(...requests), median(own.map((sample) => sample.bytes))];
    const cells = [ms.toFixed(1), ...against];
    options.progress(
      `${layout.name} ${what}: ${cells.join(" ")}, ${counts[0]} requests, at most ${counts[1]}, ${counts[2]} bytes`,
    );
    rows.push([layout.name, what, ...cells, ...counts.map(String)]);
  };
  const compare = async (
    what: string,
    bytes: number,
    before: () => Promise<void>,
    chain = 1,
    edge?: string,
  ): Promise<void> => {
    const own: Sample[] = [];
    const other: number[] = [];
    const alone: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const asked = starts(bytes, chain);
      await before();
      const ask = [
        async () => void own.push(await sampleOurs(contest, content, asked, bytes)),
        async () => void other.push(await timeRanges(contest.plain, contest.cdn, content, asked, bytes)),
        ...(edge ? [async () => void alone.push(await timeRanges(contest.plain, edge, content, asked, bytes))] : []),
      ];
      for (const contestant of round % 2 === 0 ? ask : ask.toReversed()) await contestant();
    }
    add(what, own, other, alone);
  };
  const { world, ours, nearest } = contest;
  try {
    for (const bytes of RANGE_BYTES) {
      const size = `${bytes / 1024} KiB`;
      await compare(`${size}, first`, bytes, () => forgetPlans(ours, KEY));
      await compare(`${size}, next`, bytes, async () => {});
    }
    await compare(`chain of ${CHAIN}`, RANGE_BYTES[0]!, () => forgetPlans(ours, KEY), CHAIN);
    // Asked for so often, the object is what the PoP caches.
    await fillCaches(contest);
    const edge = `${world.pops.find(({ name }) => name === POP)!.url}/o/`;
    for (const bytes of RANGE_BYTES) {
      await compare(`${bytes / 1024} KiB, cached`, bytes, () => forgetPlans(ours, KEY), 1, edge);
    }
    const repeated: Sample[] = [];
    for (const start of starts(RANGE_BYTES[0]!, rounds)) {
      await sampleOurs(contest, content, [start], RANGE_BYTES[0]!);
      repeated.push(await sampleOurs(contest, content, [start], RANGE_BYTES[0]!));
    }
    add("16 KiB, repeated", repeated);
    await world.region(nearest).down();
    const down: Sample[] = [];
    for (const start of starts(RANGE_BYTES[0]!, 3 * rounds)) {
      down.push(await sampleOurs(contest, content, [start], RANGE_BYTES[0]!, KEY_UNCACHED));
    }
    add("16 KiB, down", down);
    return rows;
  } finally {
    await contest.close();
  }
}

/** Lets both contestants cache the whole object. */
async function fillCaches({ world, ours, plain, cdn }: Contest): Promise<void> {
  for (let i = 0; i < 3; i++) {
    await ours.evaluate(async (url) => (await fetch(url, { cache: "no-store" })).arrayBuffer(), `/ec/${KEY}`);
    await world.cron();
  }
  await plain.evaluate(async (url) => (await fetch(url, { cache: "no-store" })).arrayBuffer(), cdn + KEY);
}

/** Reads ranges through the service worker, one after the other, and counts what the client sends and gets for them. */
async function sampleOurs(
  { world, ours }: Contest,
  content: Uint8Array,
  starts: readonly number[],
  bytes: number,
  key = KEY,
): Promise<Sample> {
  let ms = Number.NaN;
  const log = await requestsDuring(world, async () => {
    ms = await timeRanges(ours, "/ec/", content, starts, bytes, key);
  });
  const requests = log.filter((request) => request.from === "client" && isOfReads(request));
  return { ms, requests: requests.length, bytes: requests.reduce((sum, request) => sum + request.bytes, 0) };
}

/** Milliseconds until all ranges are there, one after the other. Rejects when a byte is wrong. */
async function timeRanges(
  page: Page,
  base: string,
  content: Uint8Array,
  starts: readonly number[],
  bytes: number,
  key = KEY,
): Promise<number> {
  const { ms, bodies } = await page.evaluate(
    async ({ url, from, length }) => {
      const start = performance.now();
      const parts: Uint8Array[] = [];
      for (const at of from) {
        const headers = { range: `bytes=${at}-${at + length - 1}` };
        const response = await fetch(url, { headers, cache: "no-store" });
        if (response.status !== 206) throw new Error(`${url}: ${response.status} ${await response.text()}`);
        parts.push(new Uint8Array(await response.arrayBuffer()));
      }
      const took = performance.now() - start;
      // As text: an array of numbers is slow to hand over.
      return {
        ms: took,
        bodies: parts.map((part) => part.reduce((text, byte) => text + String.fromCharCode(byte), "")),
      };
    },
    { url: base + key, from: [...starts], length: bytes },
  );
  for (const [i, start] of starts.entries()) {
    const expected = Buffer.from(content.subarray(start, start + bytes));
    if (!Buffer.from(bodies[i]!, "latin1").equals(expected)) throw new Error(`wrong bytes from ${base}, at ${start}`);
  }
  return ms;
}
