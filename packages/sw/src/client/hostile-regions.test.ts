/**
 * Reads of all kinds beside each other, on a simulated line, while as many regions as an object can lose do anything
 * that a server can: no wrong byte, no read that is stuck, and nothing that stays behind.
 */
import { expect, test } from "vitest";
import * as fc from "fast-check";
import type { FetchPort } from "@agarose/core";
import { sampleObject } from "@agarose/core/testing";
import { EmulatedLine, LineClient, sha256 } from "../../test/emulated-line.ts";

const MBIT = 125;
const BLOCK_BYTES = 64 * 1024;
const code = { k: 4, m: 2, sha256 };
/** In blocks with a leaf list, in whole shards with pages of hashes, and in shards of one block. */
const OBJECTS = [
  await sampleObject({ ...code, bytes: 3_300_000, stripeBytes: 1_200_000, leaves: true }),
  await sampleObject({ ...code, bytes: 3_300_001, stripeBytes: 1_000_000, pageStripes: 2 }),
  await sampleObject({ ...code, bytes: 700_000, stripeBytes: 200_001, leaves: true }),
];
const FAULTS = ["refuses", "unranged", "elsewhere", "stops", "cuts", "short", "long", "flips", "drips"] as const;

/** The fault of one GET, and the byte of its body at which it strikes. */
interface Fate {
  readonly fault: (typeof FAULTS)[number];
  readonly at: number;
}

/** How many GETs each fault has struck. */
const struck = new Map<string, number>();

/** `fetch`, spoilt where `fateOf` says so. */
function spoilt(line: EmulatedLine, fateOf: (region: string) => Fate | undefined): FetchPort {
  const { fetch, clock } = line;
  return async (url, init) => {
    const fate = fateOf(line.regions.find((name) => url.startsWith(line.urlOf(name)))!);
    if (!fate) return fetch(url, init);
    const { fault, at } = fate;
    struck.set(fault, (struck.get(fault) ?? 0) + 1);
    if (fault === "refuses") throw new TypeError("connection refused");
    const [from, last] = (/=(\d+)-(\d+)/.exec(init.headers?.["range"] ?? "")?.slice(1) ?? ["0", "400000"]).map(Number);
    if (fault === "unranged") return fetch(url, { ...init, headers: {} });
    const by = fault !== "elsewhere" ? 0 : from! < BLOCK_BYTES ? BLOCK_BYTES : -BLOCK_BYTES;
    const moved = { range: `bytes=${from! + by}-${last! + by}` };
    const response = await fetch(url, by === 0 ? init : { ...init, headers: moved });
    const end = at % (last! + 1 - from!);
    const reader = response.body!.getReader();
    let came = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const { done, value = new Uint8Array(1) } = await reader.read();
          const rest = end - came;
          came += value.length;
          if (done && fault === "long") controller.enqueue(value);
          if (done) return controller.close();
          if (fault === "drips") await clock.sleep(value.length / 3, init.signal);
          if (fault === "flips" && rest >= 0 && rest < value.length) value[rest]! ^= 1;
          if (rest >= value.length || !["stops", "cuts", "short"].includes(fault)) return controller.enqueue(value);
          if (rest > 0) controller.enqueue(value.subarray(0, rest));
          if (fault === "stops") return clock.sleep(1e9, init.signal);
          void reader.cancel();
          if (fault === "cuts") controller.error(new TypeError("connection reset"));
          else controller.close();
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
    return { ...response, body };
  };
}

const aRead = fc.record({
  atMs: fc.nat(1_000),
  start: fc.nat(3_000_000),
  bytes: fc.oneof(fc.nat(70_000), fc.nat(4_000_000)),
  leavesMs: fc.option(fc.nat(600), { freq: 4 }),
  pauseMs: fc.constantFrom(0, 0, 0, 60_000),
});
const aWorld = fc.record({
  object: fc.constantFrom(...OBJECTS),
  mbit: fc.constantFrom(5, 20, 100, 1000),
  lossy: fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 2, maxLength: 2 }),
  fromMs: fc.constantFrom(0, 300, 1_000),
  fates: fc.array(fc.option(fc.record({ fault: fc.constantFrom(...FAULTS), at: fc.nat(500_000) }), { freq: 3 }), {
    minLength: 1,
    maxLength: 30,
  }),
  reads: fc.array(aRead, { minLength: 1, maxLength: 5 }),
});

test("reads come whole, whatever two regions do with any of their GETs (property)", async () => {
  await fc.assert(
    fc.asyncProperty(aWorld, async ({ object, mbit, lossy, fromMs, fates, reads }) => {
      const rttMs = (region: number): number => 12 + 10 * region;
      const line = new EmulatedLine({ object, rate: mbit * MBIT, bodyRate: 200 * MBIT, partBytes: 16 * 1024, rttMs });
      const { clock, regions } = line;
      let asked = 0;
      const fateOf = (region: string): Fate | undefined => {
        const isStruck = lossy.includes(regions.indexOf(region)) && clock.now() >= fromMs;
        return (isStruck && fates[asked++ % fates.length]) || undefined;
      };
      Object.assign(line, { fetch: spoilt(line, fateOf) });
      const client = new LineClient(line, object);
      const size = object.manifest.bytes;
      const all = reads.map(async ({ atMs, start, bytes, leavesMs, pauseMs }) => {
        await clock.sleep(atMs);
        const from = start % size;
        const to = Math.min(size, from + 1 + bytes);
        const leave = new AbortController();
        if (leavesMs !== null) clock.after(leavesMs, () => leave.abort());
        const read = await client
          .read(from, to, { signal: leave.signal, pauseMs })
          .catch((error: { code?: string }) => {
            if (leavesMs === null || error.code !== "ABORTED") throw error;
          });
        if (!read) return;
        expect(Buffer.compare(read.bytes, object.bytes.subarray(from, to))).toBe(0);
        expect(read.ms - pauseMs).toBeLessThan(20_000 + (30 * size) / Math.min(mbit * MBIT, 25_000));
      });
      await clock.run(Promise.all(all));
      await clock.advance(120_000);
      expect([line.openBytes, clock.pendingTimers, client.line.reads, client.line.queueMs(0)]).toEqual([0, 0, 0, 0]);
      expect(client.records.filter(({ outcome }) => outcome === "pending")).toEqual([]);
    }),
    { numRuns: 150 },
  );
  for (const fault of FAULTS) expect(struck.get(fault), fault).toBeGreaterThan(3);
});
