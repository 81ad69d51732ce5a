import { describe, expect, test } from "vitest";
import { cachingOptions, type ObjectToCache } from "./caching-option.ts";
import { expectedReadMs } from "./latency.ts";
import { seededRandom } from "../random.ts";

/** Agar's Table I: two chunks in each of six regions, seen from Frankfurt. */
const REGION_MS = [80, 200, 600, 1400, 3400, 4600];
const FRANKFURT: ObjectToCache = {
  k: 9,
  m: 3,
  chunkBytes: 111_112,
  sources: Array.from({ length: 12 }, (_, chunk) => ({ chunk, meanMs: REGION_MS[chunk % 6]! })),
  cacheMs: 39,
  delta: 0,
  popularity: 80,
};

describe("cachingOptions", () => {
  test("reproduces Agar's worked example: one chunk saves the trip to Tokyo, three save that to Sao Paulo", () => {
    const options = cachingOptions(FRANKFURT);
    expect(options.map((option) => option.d)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    // Nine nearest: Frankfurt, Dublin, Virginia, Sao Paulo twice each and Tokyo once. Popularity 80 x 2,000 ms.
    expect(options[0]).toMatchObject({ chunks: [4], weight: 111_112, value: 160_000, readMs: 1400 });
    // The second one from Sao Paulo changes nothing while the other still has to come from there.
    expect(options[1]!.value).toBe(160_000);
    expect(options[2]).toMatchObject({ chunks: [3, 4, 9], value: 80 * (3400 - 600), readMs: 600 });
    expect(options[8]).toMatchObject({ value: 80 * (3400 - 39), readMs: 39 });
  });

  test("weights are bytes and grow by one chunk", () => {
    for (const option of cachingOptions(FRANKFURT)) expect(option.weight).toBe(option.d * 111_112);
  });

  test("functional chunks have the indices after the stored ones", () => {
    const options = cachingOptions({ ...FRANKFURT, firstRow: 12 });
    expect(options[2]!.chunks).toEqual([12, 13, 14]);
    expect(options[2]!.value).toBe(cachingOptions(FRANKFURT)[2]!.value);
  });

  test("functional chunks beat copies when one more request is made than needed", () => {
    const late = {
      ...FRANKFURT,
      delta: 1,
      sources: FRANKFURT.sources.map((source) => ({ ...source, sdMs: source.meanMs / 2 })),
    };
    const copies = cachingOptions(late);
    const functional = cachingOptions({ ...late, firstRow: 12 });
    // Beside three copies the extra request goes to Tokyo or farther; beside three new rows to Sao Paulo.
    expect(functional[2]!.readMs).toBeLessThan(copies[2]!.readMs);
  });

  test("a region that is down offers fewer sources: options stop where copies do", () => {
    const sources = FRANKFURT.sources.filter((source) => source.meanMs < 600);
    expect(cachingOptions({ ...FRANKFURT, sources }).length).toBe(4);
  });

  test.each<[string, Partial<ObjectToCache>]>([
    ["k of zero", { k: 0 }],
    ["a fractional chunk size", { chunkBytes: 1.5 }],
    ["a negative popularity", { popularity: -1 }],
    ["a popularity that is not a number", { popularity: NaN }],
    ["an infinite latency", { sources: [{ chunk: 0, meanMs: Infinity }] }],
  ])("refuses %s", (_name, change) => {
    expect(() => cachingOptions({ ...FRANKFURT, ...change })).toThrow(
      expect.objectContaining({ code: "CODE_INVALID" }),
    );
  });
});

describe("expectedReadMs", () => {
  test("without spread it is the k-th smallest mean", () => {
    const requests = [30, 10, 20, 40].map((meanMs) => ({ meanMs }));
    expect(expectedReadMs(requests, 3)).toBe(30);
    expect(expectedReadMs(requests, 0)).toBe(0);
    expect(expectedReadMs(requests, 5)).toBe(Infinity);
  });

  test("agrees with simulation for unequal lognormal sources", () => {
    const random = seededRandom(11);
    const requests = [80, 80, 200, 200, 600, 700].map((meanMs, i) => ({ meanMs, sdMs: meanMs * (0.2 + 0.1 * i) }));
    for (const needed of [1, 3, 5, 6]) {
      let sum = 0;
      const draws = 40_000;
      for (let n = 0; n < draws; n++) {
        const arrivals = requests.map(({ meanMs, sdMs }) => {
          const variance = Math.log1p((sdMs / meanMs) ** 2);
          return meanMs * Math.exp(Math.sqrt(variance) * random.normal() - variance / 2);
        });
        sum += arrivals.toSorted((a, b) => a - b)[needed - 1]!;
      }
      expect(Math.abs(expectedReadMs(requests, needed) / (sum / draws) - 1), `needed ${needed}`).toBeLessThan(0.01);
    }
  });
});
