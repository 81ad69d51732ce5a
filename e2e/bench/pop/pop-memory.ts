/**
 * What one isolate of a PoP holds while 16 clients read 40 MB each at once, through edge decode and through the bundle
 * route.
 */
import { get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { startPops } from "@agarose/dev-world/pops";
import type { Bench, BenchOptions } from "../bench.ts";
import { CONFIGURATION_MS, COUNTS_FLUSHED_MS, startBuckets, withClosers } from "./buckets.ts";
import { freePort } from "@agarose/dev-world/free-port";
import { watchHeap, type HeapWatch } from "@agarose/dev-world/heap";
import { describeMachine } from "@agarose/dev-world/machine";
import { spread, summarize, table } from "@agarose/dev-world/statistics";

const POP = "fra";
const BYTES = 40_000_000;
const READERS = 16;
const NAMES = Array.from({ length: READERS }, (_, i) => `${BYTES}-${i}`);
/** A chunk of a bucket that is as near as the cache is not worth caching, so buckets hold each request back. */
const BUCKET_MS = 20;
/** Share of an object's bytes that a bundle must have, to count as one of a cached object. */
const CACHED_MIN = 0.1;
const PERIODS_MAX = 8;
const SETTLE_MS = 1_000;
const ROUNDS = 5;
/** What Workers allow one isolate: https://developers.cloudflare.com/workers/platform/limits/#memory (128 MB). */
const LIMIT_MB = 128;

const WAYS = ["16 objects, edge decode", "one object, edge decode", "16 objects cached, bundle route"] as const;
type Way = (typeof WAYS)[number];

interface Round {
  /** Of the isolate, all it held. */
  readonly medianBytes: number;
  readonly peakBytes: number;
  readonly seconds: number;
  /** Answers that had the chunks that are cached; the others had a plan alone. */
  readonly withChunks: number;
}

export const popMemory: Bench = {
  name: "pop-memory",
  title: `Memory of one isolate at ${READERS} reads of ${BYTES / 1e6} MB`,
  async run(options) {
    const pop = await startPop(options);
    try {
      const keys = NAMES.map((name) => `bench/${name}`);
      const urls: Record<Way, readonly string[]> = {
        "16 objects, edge decode": keys.map((key) => `${pop.url}/o/${key}`),
        "one object, edge decode": keys.map(() => `${pop.url}/o/${keys[0]}`),
        "16 objects cached, bundle route": keys.map((key) => `${pop.url}/v1/read/${key}`),
      };
      await fillCache(pop, urls["16 objects cached, bundle route"], options);
      const rounds = Object.fromEntries(WAYS.map((way) => [way, [] as Round[]])) as Record<Way, Round[]>;
      for (let round = 0; round < (options.quick ? 1 : ROUNDS); round++) {
        for (const way of WAYS) {
          await sleep(SETTLE_MS);
          const heap = await pop.watch();
          const startMs = performance.now();
          const bytes = await Promise.all(urls[way].map(readAll));
          const seconds = (performance.now() - startMs) / 1000;
          heap.stop();
          const [, ...samples] = heap.samples;
          const { median: medianBytes } = summarize(samples);
          const peakBytes = Math.max(...samples);
          if (way.endsWith("edge decode") && Math.min(...bytes) !== BYTES) {
            throw new Error(`${way}: ${Math.min(...bytes)} of ${BYTES} bytes`);
          }
          const withChunks = bytes.filter((length) => length >= CACHED_MIN * BYTES).length;
          rounds[way].push({ medianBytes, peakBytes, seconds, withChunks });
          options.progress(
            `${way}: ${(medianBytes / 1e6).toFixed(0)} MB, at most ${(peakBytes / 1e6).toFixed(0)} MB, ${seconds.toFixed(1)} s`,
          );
        }
      }
      return describe(rounds, pop.idleBytes);
    } finally {
      await pop.close();
    }
  },
};

interface Pop {
  readonly url: string;
  /** Heap and buffers of the isolate before the first read. */
  readonly idleBytes: number;
  watch(): Promise<HeapWatch>;
  cron(): Promise<void>;
  close(): Promise<void>;
}

function startPop({ progress }: BenchOptions): Promise<Pop> {
  return withClosers(async (closers) => {
    const buckets = await startBuckets({ code: { k: 9, m: 3 }, delayMs: BUCKET_MS });
    closers.push(() => buckets.close());
    progress("objects");
    await buckets.put(NAMES);
    const inspectorPort = await freePort();
    const vars = { ...buckets.variables, CACHE_BYTES: "700000000" };
    // Miniflare passes it on: it lets the isolate collect its garbage on request.
    process.env["MINIFLARE_WORKERD_V8_FLAGS"] = "--expose-gc";
    const pops = await startPops({ pops: [{ name: POP, vars }], inspectorPort });
    closers.push(() => pops.dispose());
    const { url } = pops.pops[0]!;
    await (await fetch(`${url}/healthz`)).text();
    const watch = (): Promise<HeapWatch> => {
      // Miniflare's KV and cache run in isolates of their own, beside the PoP's.
      return watchHeap(inspectorPort, { isTarget: ({ id }) => id === `core:user:${POP}`, live: true });
    };
    const first = await watch();
    first.stop();
    return { url, idleBytes: first.before, watch, cron: () => pops.cron() };
  });
}

/** Lets the cache manager cache some of every object. */
async function fillCache(pop: Pop, bundles: readonly string[], { progress }: BenchOptions): Promise<void> {
  for (let period = 1; period <= PERIODS_MAX; period++) {
    for (const url of bundles) await readAll(url);
    await sleep(COUNTS_FLUSHED_MS);
    await pop.cron();
    // The isolate looks for a newer configuration every 5 s; a read makes it look.
    await sleep(CONFIGURATION_MS);
    const lengths: number[] = [];
    for (const url of bundles) lengths.push(await readAll(url));
    progress(`period ${period}: bundles of ${lengths.map((length) => (length / 1e6).toFixed(0)).join(", ")} MB`);
    if (Math.min(...lengths) >= CACHED_MIN * BYTES) return;
  }
  throw new Error(`some object is not cached after ${PERIODS_MAX} periods`);
}

/** Reads a body and drops it; the number of its bytes. */
function readAll(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      let bytes = 0;
      response.on("data", (part: Buffer) => (bytes += part.length));
      response.on("end", () => {
        if (response.statusCode === 200) resolve(bytes);
        else reject(new Error(`${url} answered ${response.statusCode}`));
      });
      response.on("error", reject);
    }).on("error", reject);
  });
}

function describe(rounds: Record<Way, Round[]>, idleBytes: number): string {
  const rows = WAYS.map((way) => [
    way,
    spread(summarize(rounds[way].map(({ medianBytes }) => medianBytes / 1e6)), 0),
    spread(summarize(rounds[way].map(({ peakBytes }) => peakBytes / 1e6)), 0),
    spread(summarize(rounds[way].map(({ seconds }) => seconds))),
    spread(summarize(rounds[way].map(({ withChunks }) => withChunks)), 0),
  ]);
  return [
    `${READERS} clients read ${BYTES / 1e6} MB (9+3) each at once from one PoP, buckets ${BUCKET_MS} ms away; median (quartiles) of ${ROUNDS} rounds. ` +
      `Memory is what is in use of the isolate's heap and array buffers by V8's own account: about every 100 ms all garbage is ` +
      `collected, in the isolate and between two of its turns, and then looked; the median of these samples and the highest. Garbage is ` +
      `left out because V8 collects it when it needs room; what the runtime holds outside V8 (bytes on their way to a client) is not in ` +
      `it. Idle it is ${(idleBytes / 1e6).toFixed(0)} MB. A Worker's isolate may have ${LIMIT_MB} MB.`,
    table(["reads", "isolate, MB", "highest sample, MB", "seconds", `answers with data, of ${READERS}`], rows),
    describeMachine(),
  ].join("\n\n");
}
