/**
 * Parallel ranges of one object over a line that they share, on a simulated clock: what they fetch, and how long they
 * take while a region is silent, slow or dead.
 */
import { describe, expect, test } from "vitest";
import { piecesOf } from "@agarose/core/read";
import { sampleObject } from "@agarose/core/testing";
import { EmulatedLine, LineClient, sha256, type Trouble } from "../../test/emulated-line.ts";

/** Six chunks of 250 kB in each of three stripes. */
const object = await sampleObject({ k: 4, m: 2, bytes: 3_000_000, stripeBytes: 1_000_000, leaves: true, sha256 });
const { manifest } = object;

/** Ranges, each within one chunk, that begin at once. */
const rangesOf = (count: number, bytes: number): number[] =>
  Array.from(
    { length: count },
    (_, i) => (i % 3) * 1_000_000 + Math.floor(i / 3) * 250_000 + Math.floor((250_000 - bytes) / 2),
  );

async function readAll(line: EmulatedLine, client: LineClient, starts: readonly number[], bytes: number) {
  const took = starts.map(async (start) => {
    const { ms, bytes: read } = await client.read(start, start + bytes);
    expect(Buffer.compare(read, object.bytes.subarray(start, start + bytes))).toBe(0);
    return ms;
  });
  return line.clock.run(Promise.all(took));
}

/** The blocks that a range lies in, in bytes. */
function neededBytes(start: number, bytes: number): number {
  return piecesOf(manifest, { start, end: start + bytes })!.reduce((sum, { stripe }) => sum + stripe.shardBytes, 0);
}

describe.each([
  ["20 Mbit/s", 2_500],
  ["5 Mbit/s", 625],
])("on a line of %s", (_, bytesPerMs) => {
  test.each([
    [12, 200_000],
    [12, 100_000],
  ])("%i ranges of %i bytes at once fetch at most 1.15 times the blocks they lie in", async (count, bytes) => {
    const line = new EmulatedLine({ object, rate: bytesPerMs });
    const client = new LineClient(line, object);
    // The client's earlier measurements: a small range of every region.
    for (const start of rangesOf(12, 1_000)) await line.clock.run(client.read(start, start + 1_000));
    line.fetchedBytes = 0;
    const starts = rangesOf(count, bytes);
    await readAll(line, client, starts, bytes);
    const needed = starts.reduce((sum, start) => sum + neededBytes(start, bytes), 0);
    expect(line.fetchedBytes).toBeLessThan(1.15 * needed);
  });
});

describe("while a region", () => {
  // The times of the reader that asked k others whenever a piece was late.
  test.each<[Trouble, number, number]>([
    ["silent", 1, 137],
    ["silent", 12, 312],
    ["slow", 1, 137],
    ["slow", 12, 265],
    ["dead", 1, 131],
    ["dead", 12, 320],
  ])("is %s, %i ranges at once take at most %i ms of the line's time", async (trouble, count, mostMs) => {
    const line = new EmulatedLine({ object, rate: 12_500, troubles: { [manifest.placement[0]!]: trouble } });
    const client = new LineClient(line, object);
    const took = await readAll(line, client, rangesOf(count, 100_000), 100_000);
    expect(line.struck).toBeGreaterThan(0);
    expect(Math.max(...took)).toBeLessThanOrEqual(mostMs);
  });
});
