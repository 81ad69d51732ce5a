/**
 * The first latency test: one Zipf sequence of reads with the cache manager idle and again after it has run. What is
 * asserted is not a speed but an agreement: the measured ratio against the one that the read plans themselves predict.
 */
import type { Page } from "@playwright/test";
import { openControlledApp, read } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";

const OBJECTS = 12;
const READS = 40;

/** Six times the scale of the other specs, so that the network and not the browser's own work is what is measured. */
test.use({ worldOptions: { world: "agar", scale: 0.12, jitter: 0.05, cacheBytes: 3_000_000 } });

test("the cache manager changes the mean read as the read plans predict", async ({ context, world, putRandom }) => {
  for (let i = 0; i < OBJECTS; i++) await putRandom(`zipf/${i}`, 1_000_000);
  // One PoP, so that a busy machine's noise in round trips cannot move the client to a cache that is not its own.
  for (const { name } of world.pops.slice(1)) await world.pop(name).down();
  const page = await openControlledApp(context, world);
  await collectReads(page);
  const sequence = zipfSequence(READS, OBJECTS, 1.1);

  // One pass that is not counted: connections, plans and latency estimates as any client has them after a while.
  await readAll(page, [...Array(OBJECTS).keys()]);
  const off = await readAll(page, sequence);
  await world.cron();
  await world.cron();
  await readAll(page, [...Array(OBJECTS).keys()]);
  const on = await readAll(page, sequence);

  const measured = on.meanMs / off.meanMs;
  const predicted = on.expectedMs / off.expectedMs;
  const report =
    `mean read ${off.meanMs.toFixed(0)} -> ${on.meanMs.toFixed(0)} ms, ratio ${measured.toFixed(3)}; ` +
    `predicted ${off.expectedMs.toFixed(0)} -> ${on.expectedMs.toFixed(0)} ms, ratio ${predicted.toFixed(3)}`;
  console.log(report);
  test.info().annotations.push({ type: "latency", description: report });
  expect(off.fromCache, "nothing is cached before the Cron Trigger has fired").toBe(0);
  expect(on.fromCache).toBeGreaterThan(READS / 4);
  expect(Math.abs(measured / predicted - 1)).toBeLessThan(0.2);
});

/** The collected part of the event of one read. */
interface ReadEnd {
  readonly ms: number;
  readonly expectedMs: number;
  readonly kind: string;
}

interface Pass {
  readonly meanMs: number;
  readonly expectedMs: number;
  /** Reads that used at least one cached chunk. */
  readonly fromCache: number;
}

async function collectReads(page: Page): Promise<void> {
  await page.evaluate(() => {
    const ended: ReadEnd[] = [];
    let expectedMs = 0;
    // One read after another.
    new BroadcastChannel("agarose").addEventListener("message", ({ data }) => {
      for (const event of data) {
        if (event.type === "plan") ({ expectedMs } = event);
        if (event.type === "read-end") ended.push({ ...event, expectedMs });
      }
    });
    Object.assign(globalThis, { ended });
  });
}

async function readAll(page: Page, objects: readonly number[]): Promise<Pass> {
  await page.evaluate(() => void ((globalThis as unknown as { ended: unknown[] }).ended.length = 0));
  for (const object of objects) expect((await read(page, `zipf/${object}`)).status).toBe(200);
  const ended = (): Promise<ReadEnd[]> => page.evaluate(() => (globalThis as unknown as { ended: ReadEnd[] }).ended);
  // An event may come after the answer that it describes.
  await expect.poll(async () => (await ended()).length).toBe(objects.length);
  const reads = await ended();
  const mean = (of: (read: ReadEnd) => number): number => reads.reduce((sum, each) => sum + of(each), 0) / reads.length;
  return {
    meanMs: mean(({ ms }) => ms),
    expectedMs: mean(({ expectedMs }) => expectedMs),
    fromCache: reads.filter(({ kind }) => kind !== "origin").length,
  };
}

/**
 * The same reads every time: object i with a share proportional to (i + 1)^-exponent, spread evenly over the sequence.
 */
function zipfSequence(reads: number, objects: number, exponent: number): number[] {
  const weights = Array.from({ length: objects }, (_, i) => (i + 1) ** -exponent);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const due = weights.map(() => 0);
  return Array.from({ length: reads }, () => {
    for (const [i, weight] of weights.entries()) due[i]! += weight / total;
    const next = due.indexOf(Math.max(...due));
    due[next]! -= 1;
    return next;
  });
}
