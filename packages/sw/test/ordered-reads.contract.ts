/**
 * Reads on a line that is narrower than its sources: blocks come in order, the next one first. The network is emulated
 * on a simulated clock, and one copy in the nearest region is read over the same line to compare with.
 */
import { describe, expect, test } from "vitest";
import { stripeShape } from "@agarose/core/format";
import { sampleObject, type SampleObject } from "@agarose/core/testing";
import { EmulatedLine, LineClient, sha256, type Trouble } from "./emulated-line.ts";

const MBIT = 125;
/** Bytes per millisecond of one body at most: 200 Mbit/s. */
const BODY_RATE = 200 * MBIT;
/** The round trips to the regions, in milliseconds. */
const TRIPS_MS = [12, 14, 18, 24, 30, 34, 38, 42, 46, 50, 50, 50];
const BLOCK_BYTES = 64 * 1024;

const large = await sampleObject({
  k: 10,
  m: 2,
  bytes: 12_000_000,
  stripeBytes: 4 * 1024 * 1024,
  leaves: true,
  sha256,
});
const medium = await sampleObject({ k: 4, m: 1, bytes: 6_000_000, stripeBytes: 4 * 1024 * 1024, leaves: true, sha256 });
const small = await sampleObject({ k: 5, m: 1, bytes: 1_000_000, stripeBytes: 1_000_000, leaves: true, sha256 });

/** A line, and a client that has read an object over it before. */
async function warmed(object: SampleObject, rate: number): Promise<{ line: EmulatedLine; client: LineClient }> {
  const rttMs = (region: number): number => TRIPS_MS[region]!;
  const line = new EmulatedLine({ object, rate, bodyRate: BODY_RATE, partBytes: 16 * 1024, rttMs });
  const client = new LineClient(line, object);
  await line.clock.run(client.read(0, object.manifest.bytes));
  line.fetchedBytes = 0;
  return { line, client };
}

/** How long one copy in the nearest region takes for so many bytes. */
function copyMs(bytes: number, rate: number): number {
  return TRIPS_MS[0]! + bytes / Math.min(rate, BODY_RATE);
}

/** The fast tier has the narrowest line, the slow one the others and what moves most bytes. */
export function orderedReads(tier: "fast" | "slow"): void {
  const at = (...mbits: number[]): number[] => mbits.filter((mbit) => (mbit === 20) === (tier === "fast"));

  describe.each([
    ["12 MB of 10+2", large, 1.03],
    ["6 MB of 4+1", medium, 1.03],
    ["1 MB of 5+1", small, 1.05],
  ])("%s", (_name, object, mostTimes) => {
    test.each(at(20, 50, 100))("come as soon as a copy, on a line of %i Mbit/s", async (mbit) => {
      const rate = mbit * MBIT;
      const { bytes } = object.manifest;
      const { line, client } = await warmed(object, rate);
      const read = await line.clock.run(client.read(0, bytes));
      expect(Buffer.compare(read.bytes, object.bytes)).toBe(0);
      expect(read.firstByteMs).toBeLessThan(1.5 * copyMs(BLOCK_BYTES, rate));
      expect(read.ms).toBeLessThan(mostTimes * copyMs(bytes, rate));
      expect(line.fetchedBytes).toBeLessThan(1.03 * bytes);
    });
  });

  test.runIf(tier === "fast")(
    "12 MB come from all regions at once on a line of 1 Gbit/s, in a third of a copy's time",
    async () => {
      const rate = 1000 * MBIT;
      const { line, client } = await warmed(large, rate);
      const read = await line.clock.run(client.read(0, large.manifest.bytes));
      expect(read.ms).toBeLessThan(copyMs(large.manifest.bytes, rate) / 3);
    },
  );

  test.runIf(tier === "fast")(
    "a range without an end comes in order, and all else from all regions at once, on a line of 1 Gbit/s",
    async () => {
      const rate = 1000 * MBIT;
      const { line, client } = await warmed(large, rate);
      const { bytes, stripeBytes, k } = large.manifest;
      // One after the other, so that no answer waits for the line.
      for (let index = 0; index < 10 * k; index++) {
        const start = Math.ceil(((index % k) * stripeBytes) / k);
        await line.clock.run(client.read(start, start + 100));
      }
      const whole = await line.clock.run(client.read(0, bytes));
      const range = await line.clock.run(client.read(0, bytes, { isRange: true }));
      expect(Buffer.compare(range.bytes, large.bytes)).toBe(0);
      expect(range.firstByteMs).toBeLessThan(2 * copyMs(BLOCK_BYTES, rate));
      expect(whole.firstByteMs).toBeGreaterThan(2 * range.firstByteMs);
      expect(range.ms).toBeGreaterThan(whole.ms);
      const closed = await line.clock.run(client.read(5e6, 9e6));
      expect(Buffer.compare(closed.bytes, large.bytes.subarray(5e6, 9e6))).toBe(0);
      expect(closed.ms).toBeLessThan(0.6 * copyMs(4e6, rate));
    },
  );

  test.each(at(20, 50, 100))(
    "extra chunks leave the blocks of a hot object in order, on a line of %i Mbit/s",
    async (mbit) => {
      const [first, second] = medium.manifest.placement as [string, string];
      const extra = { upload: "e".repeat(32), placement: [first, second], sha256: ["0".repeat(64), "0".repeat(64)] };
      const hot = { ...medium, manifest: { ...medium.manifest, extra } };
      const rate = mbit * MBIT;
      const { line, client } = await warmed(hot, rate);
      const read = await line.clock.run(client.read(0, hot.manifest.bytes));
      expect(Buffer.compare(read.bytes, hot.bytes)).toBe(0);
      expect(read.firstByteMs).toBeLessThan(1.5 * copyMs(BLOCK_BYTES, rate));
      expect(read.ms).toBeLessThan(1.03 * copyMs(hot.manifest.bytes, rate));
    },
  );

  test.runIf(tier === "fast")(
    "rows that take extra chunks, as a data chunk and parity are gone, believe none that lies",
    async () => {
      const extra = { upload: "e".repeat(32), placement: ["x0", "x1"], sha256: ["0".repeat(64), "0".repeat(64)] };
      const hot = { ...medium, manifest: { ...medium.manifest, extra } };
      const { placement, bytes, k } = hot.manifest;
      const { line, client } = await warmed(hot, 50 * MBIT);
      client.records.length = 0;
      for (const chunk of [1, k]) line.troubles[placement[chunk]!] = "dead";
      line.troubles["x0"] = "corrupt";
      const read = await line.clock.run(client.read(0, bytes));
      expect(Buffer.compare(read.bytes, hot.bytes)).toBe(0);
      const blocks = client.records.filter((record) => record.bytes <= 2 * BLOCK_BYTES);
      const ofRows = (source: string): string[] => {
        const own = blocks.filter((record) => record.source === source);
        return [...new Set(own.map(({ outcome, error }) => error ?? outcome))];
      };
      expect(ofRows("x0")).toContain("CHUNK_CORRUPT");
      expect(ofRows("x0")).not.toContain("used");
      expect(ofRows("x1")).toContain("used");
    },
  );

  test.runIf(tier === "fast")(
    "a data chunk that is far away is replaced by a nearer one, and not waited for",
    async () => {
      const rate = 100 * MBIT;
      // The fifth data chunk is in the fifth region, and parity in the sixth.
      const rttMs = (region: number): number => [300, 320, 340, 360, 900, 380][region]!;
      const line = new EmulatedLine({ object: small, rate, bodyRate: BODY_RATE, partBytes: 16 * 1024, rttMs });
      const read = await line.clock.run(new LineClient(line, small).read(0, small.manifest.bytes));
      expect(Buffer.compare(read.bytes, small.bytes)).toBe(0);
      expect(read.ms).toBeLessThan(700);
    },
  );

  test.runIf(tier === "slow")("many reads at once open GETs for a few stripes, and each comes whole", async () => {
    const { line, client } = await warmed(large, 50 * MBIT);
    line.mostOpenBytes = 0;
    const all = await line.clock.run(
      Promise.all(Array.from({ length: 16 }, () => client.read(0, large.manifest.bytes))),
    );
    expect(all.every(({ bytes }) => Buffer.compare(bytes, large.bytes) === 0)).toBe(true);
    // Six stripes of any chunks, and two shards in order of each of the others: not all 192 MB.
    expect(line.mostOpenBytes).toBeLessThan(40_000_000);
    expect(line.openBytes).toBe(0);
  });

  test.runIf(tier === "slow")("reads whose consumers pause for a minute hold up no other one", async () => {
    const { line, client } = await warmed(large, 10_000 * MBIT);
    const { bytes } = large.manifest;
    const pausing = Array.from({ length: 16 }, () => client.read(0, bytes, { pauseMs: 60_000 }));
    const ms = line.clock.sleep(5_000).then(async () => (await client.read(0, bytes)).ms);
    expect(await line.clock.run(ms)).toBeLessThan(5_000);
    const all = await line.clock.run(Promise.all(pausing));
    expect(Math.min(...all.map((read) => read.ms))).toBeGreaterThan(60_000);
  });

  describe.each(at(20, 50, 200, 1000))("on a line of %i Mbit/s", (mbit) => {
    const rate = mbit * MBIT;

    test("thirty seeks that are given up bring little more than they would of a copy, and hold up no read", async () => {
      const everyMs = 100;
      const { line, client } = await warmed(large, rate);
      const seek = async (i: number): Promise<void> => {
        const leave = new AbortController();
        const start = Math.floor((((i * 7) % 30) / 30) * large.manifest.bytes);
        const read = client.read(start, large.manifest.bytes, { signal: leave.signal, isRange: true });
        line.clock.after(everyMs, () => leave.abort());
        // Those near the end may come whole before.
        await read.catch(({ code }) => expect(code).toBe("ABORTED"));
      };
      const seeks = async (): Promise<void> => {
        for (let i = 0; i < 30; i++) await seek(i);
      };
      await line.clock.run(seeks());
      const ofCopy = 30 * (everyMs - TRIPS_MS[0]!) * Math.min(rate, BODY_RATE);
      expect(line.fetchedBytes).toBeLessThan(1.3 * ofCopy);
      const next = await line.clock.run(client.read(5_000_000, 5_100_000));
      expect(next.ms).toBeLessThan(3 * copyMs(100_000, rate));
    });

    test("the first byte of a seek comes with its block, also in the last 128 KiB of a stripe", async () => {
      const { line, client } = await warmed(large, rate);
      const { bytes, stripeBytes } = large.manifest;
      const starts = [1, stripeBytes - 100_000, 2 * stripeBytes - 1];
      for (const start of starts) {
        const read = await line.clock.run(client.read(start, bytes));
        expect(Buffer.compare(read.bytes, large.bytes.subarray(start))).toBe(0);
        // Two blocks are on the line before it, from regions that are nearer.
        expect(read.firstByteMs).toBeLessThan(Math.max(...TRIPS_MS) + (4 * BLOCK_BYTES) / Math.min(rate, BODY_RATE));
      }
    });
  });

  describe.each<Trouble>(["silent", "slow", "dead", "corrupt"])(
    "while a region is %s from the middle of a read on",
    (trouble) => {
      test.each(at(20, 50, 100))("12 MB come whole on a line of %i Mbit/s, a quarter later at most", async (mbit) => {
        const rate = mbit * MBIT;
        const { line, client } = await warmed(large, rate);
        const { bytes, placement } = large.manifest;
        line.clock.after(copyMs(bytes, rate) / 3, () => (line.troubles[placement[4]!] = trouble));
        const read = await line.clock.run(client.read(0, bytes));
        expect(line.struck).toBeGreaterThan(0);
        expect(Buffer.compare(read.bytes, large.bytes)).toBe(0);
        // The blocks that came before are not fetched again, and it takes a moment to see that others are late.
        expect(read.ms).toBeLessThan(1.25 * copyMs(bytes, rate));
        expect(line.fetchedBytes).toBeLessThan(1.1 * bytes);
        // A film of four fifths of the line's rate that starts so much later never stops.
        const laterMs = Math.max(...read.arrivals.map(({ ms, before }) => ms - before / (0.8 * rate)));
        expect(laterMs).toBeLessThan(1_100);
      });
    },
  );

  test.runIf(tier === "fast").each([
    ["12 MB of 10+2", large],
    ["1 MB of 5+1", small],
  ])("%s come once when the region of the first chunk refuses before the leaf list has come", async (_name, object) => {
    const rttMs = (region: number): number => TRIPS_MS[region]!;
    const line = new EmulatedLine({ object, rate: 50 * MBIT, bodyRate: BODY_RATE, partBytes: 16 * 1024, rttMs });
    line.troubles[object.manifest.placement[0]!] = "dead";
    const { bytes, k } = object.manifest;
    const read = await line.clock.run(new LineClient(line, object).read(0, bytes));
    expect(line.struck).toBeGreaterThan(0);
    expect(Buffer.compare(read.bytes, object.bytes)).toBe(0);
    // Behind a row of blocks, and not behind a stripe.
    expect(read.firstByteMs).toBeLessThan(TRIPS_MS[0]! + Math.max(...TRIPS_MS) + ((k + 4) * BLOCK_BYTES) / line.rate);
    expect(line.fetchedBytes).toBeLessThan(1.1 * bytes);
  });

  const [from, to] = [5_000_000, 9_000_000];
  const shard = stripeShape(large.manifest, 1);
  /** In three blocks of one chunk. */
  const piece = shard.start + 2 * shard.shardBytes + 60_000;
  test.runIf(tier === "fast").each<[string, string, number, number, number]>([
    ["blocks in order", "first", from, to, from],
    ["blocks in order", "a middle", from, to, 7_000_000],
    ["blocks in order", "last", from, to, to - 1],
    ["a small range", "first", piece, piece + 100_000, piece],
    ["a small range", "a middle", piece, piece + 100_000, piece + 50_000],
    ["a small range", "last", piece, piece + 100_000, piece + 99_999],
  ])("of %s, a wrong byte in the %s one is not delivered", async (_way, _which, start, end, wrong) => {
    const { line, client } = await warmed(large, 20 * MBIT);
    const { manifest, bytes } = large;
    const { shardBytes, chunkOffset, ...stripe } = stripeShape(manifest, Math.floor(wrong / manifest.stripeBytes));
    const within = wrong - stripe.start;
    const region = manifest.placement[Math.floor(within / shardBytes)]!;
    line.wrongBytes[region] = chunkOffset + (within % shardBytes);
    client.records.length = 0;
    const read = await line.clock.run(client.read(start, end));
    expect(Buffer.compare(read.bytes, bytes.subarray(start, end))).toBe(0);
    expect(line.struck).toBeGreaterThan(0);
    const failed = client.records.filter(({ outcome }) => outcome === "failed");
    expect(failed.map(({ source, error }) => [source, error])).toEqual([[region, "CHUNK_CORRUPT"]]);
    expect(failed[0]!.bytes, "it was read in blocks").toBeLessThan(shardBytes);
  });

  test.runIf(tier === "fast").each<[string, Trouble, number[]]>([
    ["two regions are dead", "dead", [2, 7]],
    ["two regions are corrupt, and one of parity with them", "corrupt", [2, 10]],
  ])("while %s, 12 MB come whole from the other ten", async (_name, trouble, regions) => {
    const { line, client } = await warmed(large, 50 * MBIT);
    const { bytes, placement } = large.manifest;
    line.clock.after(copyMs(bytes, line.rate) / 3, () => {
      for (const region of regions) line.troubles[placement[region]!] = trouble;
    });
    const read = await line.clock.run(client.read(0, bytes));
    expect(line.struck).toBeGreaterThanOrEqual(regions.length);
    expect(Buffer.compare(read.bytes, large.bytes)).toBe(0);
  });

  test.runIf(tier === "fast")(
    "while three of twelve regions are dead, a read fails, and does not end short",
    async () => {
      const { line, client } = await warmed(large, 50 * MBIT);
      const { bytes, placement } = large.manifest;
      line.clock.after(copyMs(bytes, line.rate) / 3, () => {
        for (const region of [2, 7, 11]) line.troubles[placement[region]!] = "dead";
      });
      await expect(line.clock.run(client.read(0, bytes))).rejects.toMatchObject({ code: "NOT_ENOUGH_CHUNKS" });
      expect(line.struck).toBeGreaterThan(2);
      expect(line.openBytes).toBe(0);
    },
  );

  describe.each(at(20, 50, 100))("while a region is known to be down, on a line of %i Mbit/s", (mbit) => {
    const rate = mbit * MBIT;
    const { bytes, placement, stripeBytes } = large.manifest;
    const down = 4;
    const shardBytes = Math.ceil(stripeBytes / 10);

    /** A client that has found out that the region of data chunk 4 is down. */
    async function bereft(): Promise<{ line: EmulatedLine; client: LineClient }> {
      const { line, client } = await warmed(large, rate);
      line.troubles[placement[down]!] = "dead";
      await line.clock.run(client.read(0, bytes));
      expect(line.struck).toBeGreaterThan(0);
      line.fetchedBytes = 0;
      line.struck = 0;
      return { line, client };
    }

    test("12 MB come as soon as a copy, block by block, from the other regions", async () => {
      const { line, client } = await bereft();
      const read = await line.clock.run(client.read(0, bytes));
      expect(Buffer.compare(read.bytes, large.bytes)).toBe(0);
      expect(read.firstByteMs).toBeLessThan(1.5 * copyMs(BLOCK_BYTES, rate));
      expect(read.ms).toBeLessThan(1.05 * copyMs(bytes, rate));
      expect(line.fetchedBytes).toBeLessThan(1.03 * bytes);
      // It is retried when it has been avoided for five seconds.
      expect(line.struck).toBeLessThan(2);
    });

    test("many reads at once bring little twice, and share what memory there is for rows", async () => {
      const { line, client } = await bereft();
      line.mostOpenBytes = 0;
      const reads = Array.from({ length: 16 }, () => client.read(0, bytes));
      const all = await line.clock.run(Promise.all(reads));
      expect(all.every((read) => Buffer.compare(read.bytes, large.bytes) === 0)).toBe(true);
      expect(line.fetchedBytes).toBeLessThan(1.3 * reads.length * bytes);
      expect(line.mostOpenBytes).toBeLessThan(40_000_000);
      expect(line.openBytes).toBe(0);
    });

    test("the first byte of a seek comes with its block, and behind a row where that region had it", async () => {
      const { line, client } = await bereft();
      for (const chunk of [0, down - 1, down, down + 1]) {
        const start = stripeBytes + chunk * shardBytes + 1000;
        const read = await line.clock.run(client.read(start, bytes));
        expect(Buffer.compare(read.bytes, large.bytes.subarray(start))).toBe(0);
        const blocks = chunk === down ? 10 : 1;
        expect(read.firstByteMs).toBeLessThan(Math.max(...TRIPS_MS) + ((blocks + 3) * BLOCK_BYTES) / rate);
      }
    });
  });

  test.runIf(tier === "slow")(
    "a line that falls from 200 to 5 Mbit/s in the middle of a read brings little twice",
    async () => {
      const { line, client } = await warmed(large, 200 * MBIT);
      const { bytes } = large.manifest;
      const fallMs = copyMs(bytes, line.rate) / 2;
      line.clock.after(fallMs, () => (line.rate = 5 * MBIT));
      const read = await line.clock.run(client.read(0, bytes));
      expect(Buffer.compare(read.bytes, large.bytes)).toBe(0);
      const rest = bytes - read.arrivals.findLast(({ ms }) => ms < fallMs)!.before;
      expect(rest, "the read was under way").toBeGreaterThan(bytes / 3);
      expect(read.ms - fallMs).toBeLessThan((1.5 * rest) / line.rate);
      // The stripe in which it falls may seem late, and another one before its new rate is known.
      expect(line.fetchedBytes).toBeLessThan(1.5 * bytes);
    },
  );

  test.each(at(20, 1000))(
    "a consumer that takes nothing for a minute goes on, on a line of %i Mbit/s",
    async (mbit) => {
      const { line, client } = await warmed(large, mbit * MBIT);
      const { bytes } = large.manifest;
      const reads = [60_000, 0].map((pauseMs) => client.read(0, bytes, { pauseMs }));
      const [paused, other] = await line.clock.run(Promise.all(reads));
      for (const read of [paused!, other!]) expect(Buffer.compare(read.bytes, large.bytes)).toBe(0);
      expect(paused!.ms).toBeGreaterThan(60_000);
      expect(other!.ms).toBeLessThan(3 * copyMs(bytes, mbit * MBIT));
      expect(line.fetchedBytes).toBeLessThan(2.3 * bytes);
    },
  );

  test.runIf(tier === "fast")("a range whose consumer pauses does not bring all of the object", async () => {
    const { line, client } = await warmed(large, 1000 * MBIT);
    const { bytes } = large.manifest;
    const read = client.read(0, bytes, { isRange: true, pauseMs: 60_000 });
    await line.clock.run(line.clock.sleep(30_000));
    // It pauses when a third has come, and the GETs bring whole chunks of two stripes.
    expect(line.fetchedBytes).toBeLessThan(0.9 * bytes);
    expect(Buffer.compare((await line.clock.run(read)).bytes, large.bytes)).toBe(0);
  });

  test.each(at(20, 200))("two hundred seeks in ten seconds leave nothing behind, at %i Mbit/s", async (mbit) => {
    const rate = mbit * MBIT;
    const { line, client } = await warmed(large, rate);
    const { bytes } = large.manifest;
    let left = 0;
    const seeks = Array.from({ length: 200 }, async (_, i) => {
      await line.clock.sleep(50 * i);
      const leave = new AbortController();
      // Some leave before the head has come.
      line.clock.after((i * 7) % 60, () => leave.abort());
      const start = Math.floor((((i * 37) % 200) / 200) * bytes);
      const read = client.read(start, bytes, { signal: leave.signal, isRange: true });
      await read.catch(({ code }) => {
        expect(code).toBe("ABORTED");
        left++;
      });
    });
    await line.clock.run(Promise.all(seeks));
    expect(left).toBeGreaterThan(150);
    expect(client.line.reads).toBe(0);
    expect(client.records.filter(({ outcome }) => outcome === "pending")).toEqual([]);
    await line.clock.advance(0);
    expect([line.openBytes, line.clock.pendingTimers]).toEqual([0, 0]);
    const next = await line.clock.run(client.read(5_000_000, 5_100_000));
    expect(Buffer.compare(next.bytes, large.bytes.subarray(5_000_000, 5_100_000))).toBe(0);
    expect(next.ms).toBeLessThan(3 * copyMs(100_000, rate) + 100);
  });
}
