/**
 * A 40 MB object that is not cached, through the service worker over the emulated WAN: when its first byte is there,
 * when its last, and what memory the browser takes for it, against plain fetches of as many bytes.
 *
 * The page drops what it reads, so what is left in memory is what the way to it holds.
 */
import { randomBytes } from "node:crypto";
import type { Browser, Page } from "@playwright/test";
import { openControlledApp } from "../../fixtures/app.ts";
import { LocalWorld } from "@agarose/dev-world/client";
import type { Bench } from "../bench.ts";
import { openPlainPage, startBrowser } from "../lib/browser.ts";
import { freePort } from "@agarose/dev-world/free-port";
import { watchHeap } from "@agarose/dev-world/heap";
import { describeMachine } from "@agarose/dev-world/machine";
import { descendants, residentBytes } from "@agarose/dev-world/process-memory";
import { putWhole } from "../s3/sdk-put.ts";
import { spread, summarize, table } from "@agarose/dev-world/statistics";

const KEY = "bench/forty-megabytes";
const BYTES = 40_000_000;
const SCALE = 0.25;
const ROUNDS = 5;
const SAMPLE_MS = 20;
/** What a browser does right after its start would count as the read's. */
const SETTLE_MS = 1_000;

const WAYS = ["service worker", "`/o/<key>`", "bucket"] as const;
type Way = (typeof WAYS)[number];

interface Run {
  readonly firstByteMs: number;
  readonly totalMs: number;
  /** Most that the renderer processes had above what they had just before. */
  readonly residentBytes: number;
  readonly heapBytes: number;
}

export const readStreaming: Bench = {
  name: "read-streaming",
  title: "First byte and memory of a 40 MB read",
  async run({ quick, progress }) {
    const runs: Record<Way, Run[]> = { "service worker": [], "`/o/<key>`": [], bucket: [] };
    const world = await LocalWorld.start({ world: "agar", scale: SCALE, jitter: 0.1 });
    let version = "";
    try {
      const urls: Record<Way, string> = {
        "service worker": `/ec/${KEY}`,
        "`/o/<key>`": `${world.pops[0]!.url}/o/${KEY}`,
        bucket: await putBoth(world),
      };
      for (let round = 0; round < (quick ? 1 : ROUNDS); round++) {
        for (const way of WAYS) {
          const { run, browserVersion } = await measure(world, way, urls[way]);
          version = browserVersion;
          runs[way].push(run);
          progress(
            `${way}: first byte ${run.firstByteMs.toFixed(0)} of ${run.totalMs.toFixed(0)} ms, ` +
              `${megabytes(run.residentBytes)} MB resident, heap ${megabytes(run.heapBytes)} MB`,
          );
        }
      }
    } finally {
      await world.stop();
    }
    return describe(runs, version);
  },
};

/** One read in a browser of its own, because memory that a process holds free already would not show. */
async function measure(world: LocalWorld, way: Way, url: string): Promise<{ run: Run; browserVersion: string }> {
  const port = await freePort();
  const { browser, pid, close } = await startBrowser([`--remote-debugging-port=${port}`]);
  try {
    const page = await openPage(browser, world, way);
    await page.waitForTimeout(SETTLE_MS);
    const renderers = descendants(pid, "--type=renderer");
    const resident = (): number => renderers.reduce((sum, child) => sum + (residentBytes(child) ?? 0), 0);
    const heap = await watchHeap(port);
    const before = resident();
    let peak = before;
    const timer = setInterval(() => (peak = Math.max(peak, resident())), SAMPLE_MS);
    const { bytes, kind, ...times } = await readAndDrop(page, url);
    clearInterval(timer);
    const run = { ...times, residentBytes: peak - before, heapBytes: heap.stop() };
    if (bytes !== BYTES) throw new Error(`${way} returned ${bytes} of ${BYTES} bytes`);
    if (way === "service worker" && kind !== "origin")
      throw new Error(`the read was of kind ${kind}, origin is expected`);
    return { run, browserVersion: browser.version() };
  } finally {
    await close();
  }
}

async function openPage(browser: Browser, world: LocalWorld, way: Way): Promise<Page> {
  const context = await browser.newContext();
  return way === "service worker" ? openControlledApp(context, world) : openPlainPage(context, world);
}

function readAndDrop(page: Page, url: string) {
  return page.evaluate(async (address) => {
    const start = performance.now();
    const response = await fetch(address, { cache: "no-store" });
    const reader = response.body!.getReader();
    let firstByteMs: number | undefined;
    let bytes = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      firstByteMs ??= performance.now() - start;
      bytes += value.length;
    }
    const totalMs = performance.now() - start;
    return { firstByteMs: firstByteMs ?? totalMs, totalMs, bytes, kind: response.headers.get("x-agarose-read") };
  }, url);
}

/** Puts the object coded, and once more as it is into the nearest bucket; returns the address of the latter. */
async function putBoth(world: LocalWorld): Promise<string> {
  const content = randomBytes(BYTES);
  await world.put(KEY, content);
  const nearest = world.regions[0]!;
  await putWhole(world, nearest.name, new Map([[KEY, content]]));
  return `${nearest.endpoint}/${nearest.bucket}/${KEY}`;
}

function describe(runs: Record<Way, Run[]>, browser: string): string {
  const rows = WAYS.map((way) => {
    const of = (value: (run: Run) => number): string => spread(summarize(runs[way].map(value)), 0);
    return [
      way,
      of(({ firstByteMs }) => firstByteMs),
      of(({ totalMs }) => totalMs),
      of((run) => run.residentBytes / 1e6),
      of(({ heapBytes }) => heapBytes / 1e6),
    ];
  });
  return [
    `${BYTES / 1e6} MB (9+3, ten stripes), nothing cached, links of Agar's Table I times ${SCALE} at 200 Mbit/s per transfer; ` +
      `median (quartiles) of ${ROUNDS} rounds, each way in a browser of its own each time. The page reads the stream and drops it. ` +
      "*Bucket* is a plain `fetch` of the same bytes as one object from the nearest bucket (20 ms): the replica next door. " +
      `Memory is the peak above what was there just before: resident memory of the renderer processes (page and service worker), sampled ` +
      `every ${SAMPLE_MS} ms, and the JavaScript heaps with their array buffers, by the DevTools protocol.`,
    table(["way", "first byte, ms", "last byte, ms", "resident, MB", "heap and buffers, MB"], rows),
    describeMachine(browser),
  ].join("\n\n");
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}
