/** The contract of an engine. The same suite runs on every one. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import type { LoadedCodec, Shard } from "./codec.ts";
import { javascriptCodec } from "./javascript-engine.ts";

/** Registers the suite for one engine. */
export function describeCodec(name: string, load: () => Promise<LoadedCodec>): void {
  describe(`codec on ${name}`, { timeout: 60_000 }, async () => {
    const codec = await load();

    test("a parity row is the same whichever other rows are encoded with it", () => {
      const data = shardsOf(9, 100);
      const all = codec.encode(data, indices(9, 21));
      indices(9, 21).forEach((row, i) => expect(codec.encode(data, [row])[0]).toEqual(all[i]));
    });

    test.each([1, 2, 3, 4])("every loss pattern of (k,%i) is recovered for all k up to 12, data and parity", (m) => {
      let patterns = 0;
      for (const k of indices(1, 13)) {
        const stripe = stripeOf(codec, k, m, 67);
        for (const kept of combinations(k + m, k)) {
          const lost = indices(0, k + m).filter((index) => !kept.includes(index));
          const recovered = codec.reconstruct(k, kept.map(shardIn(stripe)), lost);
          const wrong = lost.filter((index, i) => !equal(recovered[i]!, stripe[index]!));
          if (wrong.length > 0) expect.fail(`(${k},${m}) from ${kept}: wrong ${wrong}`);
          patterns++;
        }
      }
      // The sum of the binomials (k+m over m) for k = 1..12.
      expect(patterns).toBe([90, 454, 1819, 6187][m - 1]);
    });

    test("every set of 9 of the 12 + 9 rows with functional chunks decodes (random sample)", () => {
      const stripe = stripeOf(codec, 9, 12, 33);
      const nine = fc.shuffledSubarray(indices(0, 21), { minLength: 9, maxLength: 9 });
      fc.assert(
        fc.property(nine, (kept) => {
          expect(codec.reconstruct(9, kept.map(shardIn(stripe)), indices(0, 21))).toEqual(stripe);
        }),
        { numRuns: 200 },
      );
    });

    test("a functional chunk comes out the same from any k shards as from the data (random sample)", () => {
      const stripe = stripeOf(codec, 9, 3, 40);
      const rows = [12, 20, 100, 255];
      const expected = codec.encode(stripe.slice(0, 9), rows);
      fc.assert(
        fc.property(fc.shuffledSubarray(indices(0, 12), { minLength: 9, maxLength: 9 }), (kept) => {
          expect(codec.reconstruct(9, kept.map(shardIn(stripe)), rows)).toEqual(expected);
        }),
        { numRuns: 100 },
      );
    });

    test("codes of any shape recover from any m losses, in any order, at odd sizes and offsets (property)", () => {
      fc.assert(
        fc.property(codes(), ({ k, m, bytes, offset, seed }) => {
          const data = indices(0, k).map((i) => unaligned(randomBytes(bytes, seed + i), offset + i));
          const stripe = [...data, ...codec.encode(data, indices(k, k + m))];
          const kept = shuffled(indices(0, k + m), seed).slice(0, k);
          const lost = indices(0, k + m).filter((index) => !kept.includes(index));
          const out = lost.map((_, i) => unaligned(new Uint8Array(bytes), offset + 3 + i));
          const result = codec.reconstruct(k, kept.map(shardIn(stripe)), lost, out);
          expect(result.every((bytesOut, i) => bytesOut === out[i])).toBe(true);
          expect(result.map((b) => b.slice())).toEqual(lost.map((index) => stripe[index]!.slice()));
        }),
        { numRuns: 100 },
      );
    });

    test("it agrees with the JavaScript engine, an independent implementation (property)", () => {
      fc.assert(
        fc.property(codes(), ({ k, m, bytes, seed }) => {
          const data = indices(0, k).map((i) => randomBytes(bytes, seed + i));
          const rows = shuffled(indices(k, 256), seed).slice(0, m);
          expect(codec.encode(data, rows)).toEqual(javascriptCodec().encode(data, rows));
        }),
        { numRuns: 60 },
      );
    });

    test.each([1, 2, 127, 255])("k = %i uses all 256 rows of the field", (k) => {
      const data = shardsOf(k, 65);
      const rows = indices(k, 256);
      const stripe = [...data, ...codec.encode(data, rows)];
      const kept = indices(256 - k, 256).map(shardIn(stripe));
      expect(codec.reconstruct(k, kept, indices(0, 256 - k))).toEqual(stripe.slice(0, 256 - k));
    });

    test("shards longer than a block are recovered to the last byte, at every length around the block's edges", () => {
      for (const bytes of [16_383, 16_384, 16_385, 32_768, 50_001]) {
        const stripe = stripeOf(codec, 4, 2, bytes);
        expect(codec.reconstruct(4, [1, 3, 4, 5].map(shardIn(stripe)), [0, 2])).toEqual([stripe[0], stripe[2]]);
      }
    });

    test("empty shards give empty shards", () => {
      const stripe = stripeOf(codec, 3, 2, 0);
      expect(codec.reconstruct(3, [2, 3, 4].map(shardIn(stripe)), [0, 1])).toEqual([
        new Uint8Array(),
        new Uint8Array(),
      ]);
    });

    test("with k = 1 every parity is a copy", () => {
      const [data] = shardsOf(1, 20);
      expect(codec.encode([data!], [1, 7, 255])).toEqual([data, data, data]);
    });

    test("nothing wanted gives nothing", () => {
      const stripe = stripeOf(codec, 3, 2, 10);
      expect(codec.reconstruct(3, [0, 1, 2].map(shardIn(stripe)), [])).toEqual([]);
      expect(codec.encode(stripe.slice(0, 3), [])).toEqual([]);
    });

    test("buffers that are given are the buffers that are returned", () => {
      const stripe = stripeOf(codec, 3, 2, 10);
      const out = [new Uint8Array(10), new Uint8Array(10)];
      const result = codec.reconstruct(3, [0, 3, 4].map(shardIn(stripe)), [0, 1], out);
      expect(result[0]).toBe(out[0]);
      expect(result[1]).toBe(out[1]);
      expect(out).toEqual([stripe[0], stripe[1]]);
    });

    describe("bad input is refused with a typed error, and the codec works afterwards", () => {
      const data = shardsOf(3, 8);
      const shards = data.map((bytes, index) => ({ index, bytes }));
      const cases: [string, () => unknown, string, Record<string, unknown>][] = [
        ["no data shards", () => codec.encode([], [1]), "CODE_INVALID", { k: 0, kMax: 255 }],
        ["k = 0", () => codec.reconstruct(0, shards, [3]), "CODE_INVALID", { k: 0, kMax: 255 }],
        ["k = 256", () => codec.reconstruct(256, shards, [3]), "CODE_INVALID", { k: 256, kMax: 255 }],
        ["k = 2.5", () => codec.reconstruct(2.5, shards, [3]), "CODE_INVALID", { k: 2.5 }],
        [
          "fewer than k shards",
          () => codec.reconstruct(4, shards, [3]),
          "NOT_ENOUGH_SHARDS",
          { needed: 4, received: 3 },
        ],
        [
          "shards of unequal length",
          () => codec.reconstruct(3, [...shards.slice(1), { index: 5, bytes: new Uint8Array(7) }], [0]),
          "SHARDS_INVALID",
          { at: 2, bytes: 7, expectedBytes: 8 },
        ],
        [
          "data of unequal length",
          () => codec.encode([data[0]!, new Uint8Array(9)], [2]),
          "SHARDS_INVALID",
          { bytes: 9 },
        ],
        ["a doubled shard", () => codec.reconstruct(3, [...shards, shards[1]!], [3]), "SHARDS_INVALID", { index: 1 }],
        ["a doubled row", () => codec.encode(data, [3, 3]), "SHARDS_INVALID", { index: 3 }],
        ["a doubled wanted row", () => codec.reconstruct(3, shards, [4, 4]), "SHARDS_INVALID", { index: 4 }],
        ["row 256", () => codec.encode(data, [256]), "SHARDS_INVALID", { index: 256, highest: 255 }],
        ["a data row to encode", () => codec.encode(data, [2]), "SHARDS_INVALID", { index: 2, lowest: 3 }],
        [
          "shard -1",
          () => codec.reconstruct(3, [{ index: -1, bytes: data[0]! }], [0]),
          "SHARDS_INVALID",
          { index: -1 },
        ],
        ["wanted NaN", () => codec.reconstruct(3, shards, [Number.NaN]), "SHARDS_INVALID", { lowest: 0 }],
        [
          "lengths past the memory",
          () => codec.encode(data.map(endless), [3, 4]),
          "SHARDS_INVALID",
          { rows: 2, bytes: 2 ** 50 },
        ],
        [
          "too few buffers",
          () => codec.encode(data, [3, 4], [new Uint8Array(8)]),
          "SHARDS_INVALID",
          { buffers: 1, rows: 2 },
        ],
        [
          "a short buffer",
          () => codec.encode(data, [3], [new Uint8Array(7)]),
          "SHARDS_INVALID",
          { bytes: 7, expectedBytes: 8 },
        ],
      ];

      test.each(cases)("%s", (_, call, code, details) => {
        const before = codec.encode(data, [3, 4]);
        const error = thrownBy(call);
        expect(error).toMatchObject({ name: "AgaroseError", code, details });
        for (const fact of Object.values(details)) expect((error as Error).message).toContain(String(fact));
        expect(codec.encode(data, [3, 4])).toEqual(before);
      });
    });
  });
}

function codes() {
  return fc.record({
    k: fc.integer({ min: 1, max: 40 }),
    m: fc.integer({ min: 1, max: 20 }),
    bytes: fc.oneof(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 1000, max: 5000 })),
    offset: fc.integer({ min: 0, max: 15 }),
    seed: fc.integer({ min: 1, max: 1 << 30 }),
  });
}

/** `shard`, which claims to be longer than any memory. */
function endless(shard: Uint8Array): Uint8Array {
  return Object.defineProperty(shard.slice(), "length", { value: 2 ** 50 });
}

function thrownBy(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

function stripeOf(codec: LoadedCodec, k: number, m: number, bytes: number): Uint8Array[] {
  const data = shardsOf(k, bytes);
  return [...data, ...codec.encode(data, indices(k, k + m))];
}

function shardsOf(k: number, bytes: number): Uint8Array[] {
  return indices(0, k).map((i) => randomBytes(bytes, 1000 * k + i + 1));
}

function shardIn(stripe: readonly Uint8Array[]): (index: number) => Shard {
  return (index) => ({ index, bytes: stripe[index]! });
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

function indices(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

/** A copy of `bytes` that starts `offset` bytes into its buffer. */
function unaligned(bytes: Uint8Array, offset: number): Uint8Array {
  const copy = new Uint8Array(bytes.length + offset).subarray(offset);
  copy.set(bytes);
  return copy;
}

/** Seeded xorshift32. */
function random(seed: number): () => number {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

function randomBytes(length: number, seed: number): Uint8Array {
  const next = random(Math.imul(seed, 2_654_435_761));
  return Uint8Array.from({ length }, () => next() >>> 8);
}

function shuffled(values: number[], seed: number): number[] {
  const next = random(seed);
  return values
    .map((value) => [next(), value] as const)
    .toSorted((a, b) => a[0] - b[0])
    .map(([, value]) => value);
}

/** All ways to keep `size` of 0..n-1. */
function combinations(n: number, size: number, from = 0): number[][] {
  if (size === 0) return [[]];
  return indices(from, n - size + 1).flatMap((first) =>
    combinations(n, size - 1, first + 1).map((rest) => [first, ...rest]),
  );
}
