/**
 * The cost of reads through the service worker for the user's machine and connection: CPU time per megabyte on the
 * page's main thread and in its whole process (where the worker runs too), and bytes that crossed the client's links
 * per byte of the object, against plain fetches of `/o/<key>`.
 */
import { randomBytes } from "node:crypto";
import type { Browser, CDPSession, Page } from "@playwright/test";
import { openControlledApp } from "../../fixtures/app.ts";
import { LocalWorld } from "@agarose/dev-world/client";
import type { Bench } from "../bench.ts";
import { openPlainPage, startBrowser } from "../lib/browser.ts";
import { describeMachine } from "@agarose/dev-world/machine";
import { table } from "@agarose/dev-world/statistics";

/**
 * So many objects of each size are read in turn. The code is the default one, 9 + 3. Those of 0.1 MB are more than the
 * service worker remembers (8 MiB), so that none comes from its memory; larger objects it does not remember.
 */
const SIZES: readonly Size[] = [
  { bytes: 100_000, objects: 100, reads: 200 },
  { bytes: 1_000_000, objects: 1, reads: 60 },
  { bytes: 8_000_000, objects: 1, reads: 12 },
];
const K = 9;
const DELTA = 1;
/** Of the bytes used, what may be fetched beyond those and delta: `packages/sw/src/client/hedge-budget.ts`. */
const HEDGED_SHARE = 0.03;
const WAYS = ["service worker", "`/o/<key>`"] as const;

interface Size {
  readonly bytes: number;
  readonly objects: number;
  readonly reads: number;
}

interface Cost {
  readonly way: (typeof WAYS)[number];
  readonly bytes: number;
  readonly mainMsPerMb: number;
  readonly processMsPerMb: number;
  /** Bytes that came over the client's links, per byte of the objects read. */
  readonly fetchedPerByte: number;
}

export const readCost: Bench = {
  name: "read-cost",
  title: "CPU and bytes of a read through the service worker",
  async run({ quick, progress }) {
    // Jitter makes stragglers, which is what hedging answers.
    const world = await LocalWorld.start({ world: "agar", scale: 0.1, jitter: 0.3 });
    const costs: Cost[] = [];
    let version = "";
    try {
      for (const size of SIZES) for (const key of keysOf(size)) await world.put(key, randomBytes(size.bytes));
      for (const way of WAYS) {
        const { browser, close } = await startBrowser();
        version = browser.version();
        try {
          const page = await openPage(browser, world, way);
          for (const size of SIZES) {
            const reads = quick ? Math.ceil(size.reads / 10) : size.reads;
            const cost = await measure(browser, page, world, way, { ...size, reads });
            costs.push(cost);
            progress(
              `${way}, ${size.bytes / 1e6} MB: main thread ${cost.mainMsPerMb.toFixed(2)}, process ` +
                `${cost.processMsPerMb.toFixed(2)} ms/MB, ${cost.fetchedPerByte.toFixed(3)} bytes per byte`,
            );
          }
        } finally {
          await close();
        }
      }
    } finally {
      await world.stop();
    }
    return describe(costs, version);
  },
};

async function measure(browser: Browser, page: Page, world: LocalWorld, way: Cost["way"], size: Size): Promise<Cost> {
  const { bytes, reads } = size;
  const base = way === "service worker" ? "/ec" : `${world.pops[0]!.url}/o`;
  const urls = keysOf(size).map((key) => `${base}/${key}`);
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const ofBrowser = await browser.newBrowserCDPSession();
  // Plans, connections and estimates are there from then on.
  await readAll(page, urls, Math.max(3, urls.length), bytes);
  await world.reset();
  const before = await cpuMs(session, ofBrowser);
  await readAll(page, urls, reads, bytes);
  const after = await cpuMs(session, ofBrowser);
  const megabytes = (reads * bytes) / 1e6;
  const records = await world.log();
  const fetched = records.filter(({ from }) => from === "client").reduce((sum, record) => sum + record.bytes, 0);
  return {
    way,
    bytes,
    mainMsPerMb: (after.mainMs - before.mainMs) / megabytes,
    processMsPerMb: (after.processMs - before.processMs) / megabytes,
    fetchedPerByte: fetched / (reads * bytes),
  };
}

/** What the page's main thread, and all renderer processes, have computed so far. */
async function cpuMs(page: CDPSession, browser: CDPSession): Promise<{ mainMs: number; processMs: number }> {
  const { metrics } = await page.send("Performance.getMetrics");
  const { processInfo } = await browser.send("SystemInfo.getProcessInfo");
  const task = metrics.find(({ name }) => name === "TaskDuration")!.value;
  const renderers = processInfo.filter(({ type }) => type === "renderer");
  return { mainMs: 1000 * task, processMs: 1000 * renderers.reduce((sum, { cpuTime }) => sum + cpuTime, 0) };
}

/** Reads `urls` in turn, one after the other, dropping what comes. */
async function readAll(page: Page, urls: readonly string[], reads: number, bytes: number): Promise<void> {
  const read = await page.evaluate(
    async ([addresses, count]) => {
      let total = 0;
      for (let i = 0; i < count; i++) {
        const response = await fetch(addresses[i % addresses.length]!, { cache: "no-store" });
        const reader = response.body!.getReader();
        for (let part = await reader.read(); !part.done; part = await reader.read()) total += part.value.length;
      }
      return total;
    },
    [urls, reads] as const,
  );
  if (read !== reads * bytes) throw new Error(`${urls[0]} gave ${read} bytes in ${reads} reads of ${bytes}`);
}

async function openPage(browser: Browser, world: LocalWorld, way: Cost["way"]): Promise<Page> {
  const context = await browser.newContext();
  return way === "service worker" ? openControlledApp(context, world) : openPlainPage(context, world);
}

function keysOf({ bytes, objects }: Size): string[] {
  return Array.from({ length: objects }, (_, i) => `bench/cost-${bytes}-${i}`);
}

function describe(costs: readonly Cost[], browser: string): string {
  const rows = costs.map(({ way, bytes, mainMsPerMb, processMsPerMb, fetchedPerByte }) => [
    `${bytes / 1e6} MB, ${way}`,
    mainMsPerMb.toFixed(2),
    processMsPerMb.toFixed(2),
    fetchedPerByte.toFixed(3),
  ]);
  const bound = 1 + DELTA / K + HEDGED_SHARE;
  return [
    "Objects that no PoP has cached, read one after the other in a page that drops what it gets, over the emulated WAN with " +
      "jitter. No read comes from the service worker's memory. Main thread: the page's task time. Process: CPU time of the renderer, in which page and worker run. Bytes: all " +
      "bodies that crossed the client's links, probes, plans and transfers that were aborted included; delta = " +
      `${DELTA} and k = ${K}, so that chunks alone may take 1 + delta/k + ${100 * HEDGED_SHARE}% = ${bound.toFixed(3)}.`,
    table(["object and way", "main thread, ms/MB", "process, ms/MB", "bytes per byte"], rows),
    describeMachine(browser),
  ].join("\n\n");
}
