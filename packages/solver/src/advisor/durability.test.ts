import { describe, expect, test } from "vitest";
import { FAILURES_DEFAULT, lossesPerYear, nines, unavailability } from "./durability.ts";
import type { ChunkPlace, FailureModel } from "./durability.ts";
import { seededRandom } from "../random.ts";

const NO_FAILURES: FailureModel = {
  regionDown: 0,
  providerDown: 0,
  chunkLossesPerYear: 0,
  regionLossesPerYear: 0,
  providerLossesPerYear: 0,
  repairDays: 365.25,
};
/** n regions of one chunk each, all of them of different providers. */
const apart = (n: number): ChunkPlace[] => Array.from({ length: n }, (_, at) => ({ provider: `p${at}`, chunks: 1 }));
const choose = (n: number, k: number): number => (k === 0 ? 1 : (choose(n - 1, k - 1) * n) / k);

describe("availability", () => {
  test.each([
    [4, 2, 0.01],
    [9, 3, 0.001],
    [1, 2, 0.2],
  ])("of %i+%i over independent regions is the binomial tail", (k, m, share) => {
    const n = k + m;
    let tail = 0;
    for (let lost = m + 1; lost <= n; lost++) tail += choose(n, lost) * share ** lost * (1 - share) ** (n - lost);
    expect(unavailability(apart(n), m, { ...NO_FAILURES, regionDown: share }) / tail).toBeCloseTo(1, 10);
  });

  test("two regions of one provider fail together as often as it does", () => {
    const places = [
      { provider: "p", chunks: 2 },
      { provider: "p", chunks: 2 },
      { provider: "q", chunks: 2 },
    ];
    const down = { ...NO_FAILURES, providerDown: 0.01 };
    // Four of six chunks are gone with p, two with q.
    expect(unavailability(places, 3, down)).toBeCloseTo(0.01, 12);
    expect(unavailability(places, 4, down)).toBeCloseTo(0.0001, 12);
  });

  test("equals what a random draw of regions and providers counts", () => {
    const places: ChunkPlace[] = [
      { provider: "p", chunks: 2 },
      { provider: "p", chunks: 1 },
      { provider: "q", chunks: 2 },
      { provider: "r", chunks: 1 },
    ];
    const seed = 7;
    const random = seededRandom(seed).next;
    const [regionDown, providerDown, m, draws] = [0.2, 0.1, 2, 200_000];
    let unreadable = 0;
    for (let draw = 0; draw < draws; draw++) {
      const downProviders = new Set(["p", "q", "r"].filter(() => random() < providerDown));
      const lost = places.filter(({ provider }) => random() < regionDown || downProviders.has(provider));
      if (lost.reduce((sum, { chunks }) => sum + chunks, 0) > m) unreadable++;
    }
    const expected = unavailability(places, m, { ...NO_FAILURES, regionDown, providerDown });
    const sd = Math.sqrt((expected * (1 - expected)) / draws);
    expect(Math.abs(unreadable / draws - expected), `seed ${seed}`).toBeLessThan(4 * sd);
  });
});

describe("durability", () => {
  /** Mean years to the loss of m + 1 of n with repairs in parallel: the absorbing birth-death chain, solved exactly. */
  function yearsToLoss(n: number, m: number, lambda: number, mu: number): number {
    let [sum, step] = [0, 0];
    for (let lost = 0; lost <= m; lost++) {
      // Mean time from `lost` to `lost` + 1 losses.
      const [up, down] = [(n - lost) * lambda, lost * mu];
      step = 1 / up + (down / up) * step;
      sum += step;
    }
    return sum;
  }

  test.each([
    [2, 1],
    [6, 2],
    [12, 3],
  ])("of %i chunks of which %i may be lost is that of the birth-death chain", (n, m) => {
    const [lambda, repairDays] = [0.001, 1];
    const mu = 365.25 / repairDays;
    const rate = lossesPerYear(apart(n), m, { ...NO_FAILURES, chunkLossesPerYear: lambda, repairDays });
    expect(rate * yearsToLoss(n, m, lambda, mu)).toBeCloseTo(1, 3);
  });

  test("a mirrored pair has the mean time to loss of the textbooks, (3 lambda + mu) / (2 lambda^2)", () => {
    const [lambda, mu] = [0.01, 365.25];
    const rate = lossesPerYear(apart(2), 1, { ...NO_FAILURES, regionLossesPerYear: lambda, repairDays: 1 });
    expect((rate * (3 * lambda + mu)) / (2 * lambda ** 2)).toBeCloseTo(1, 3);
  });

  test("equals what a simulation of failures and repairs counts", () => {
    const places: ChunkPlace[] = [
      { provider: "p", chunks: 2 },
      { provider: "p", chunks: 1 },
      { provider: "q", chunks: 2 },
      { provider: "r", chunks: 1 },
    ];
    const rates: FailureModel = {
      ...NO_FAILURES,
      chunkLossesPerYear: 0.3,
      regionLossesPerYear: 0.2,
      providerLossesPerYear: 0.1,
      repairDays: 36.525,
    };
    const seed = 11;
    const years = 60_000;
    const counted = simulateLosses(places, 2, rates, years, seed);
    const expected = lossesPerYear(places, 2, rates) * years;
    // Losses come in bursts while two components are failed, so they spread more than a Poisson count.
    expect(Math.abs(counted - expected), `seed ${seed}: ${counted}, expected ${expected}`).toBeLessThan(
      6 * Math.sqrt(expected),
    );
    expect(counted).toBeGreaterThan(1_000);
  });

  test("more parity, more providers and quicker repairs add nines", () => {
    const of = (places: ChunkPlace[], m: number, more: Partial<FailureModel> = {}): number =>
      nines(lossesPerYear(places, m, { ...FAILURES_DEFAULT, ...more }));
    const together = apart(6).map((place) => ({ ...place, provider: "p" }));
    expect(of(apart(6), 2)).toBeGreaterThan(of(apart(6), 1));
    expect(of(apart(6), 2)).toBeGreaterThan(of(together, 2));
    expect(of(apart(6), 2, { repairDays: 1 })).toBeGreaterThan(of(apart(6), 2));
    // One provider is as safe as the provider.
    expect(of(together, 2)).toBeCloseTo(4, 1);
  });
});

/** Counts how often more than m chunks become lost, component by component, in exponential times. */
function simulateLosses(
  places: readonly ChunkPlace[],
  m: number,
  rates: FailureModel,
  years: number,
  seed: number,
): number {
  const random = seededRandom(seed).next;
  const repairs = 365.25 / rates.repairDays;
  interface Part {
    readonly rate: number;
    readonly takes: readonly number[];
    failed: boolean;
    nextYear: number;
  }
  const chunkRegion = places.flatMap(({ chunks }, region) => Array.from({ length: chunks }, () => region));
  const chunksOf = (isOwn: (region: number) => boolean): number[] =>
    chunkRegion.flatMap((region, chunk) => (isOwn(region) ? [chunk] : []));
  const draw = (rate: number): number => -Math.log(1 - random()) / rate;
  const part = (rate: number, takes: number[]): Part => ({ rate, takes, failed: false, nextYear: draw(rate) });
  const parts = [
    ...chunkRegion.map((_, chunk) => part(rates.chunkLossesPerYear, [chunk])),
    ...places.map((_, region) =>
      part(
        rates.regionLossesPerYear,
        chunksOf((one) => one === region),
      ),
    ),
    ...["p", "q", "r"].map((name) =>
      part(
        rates.providerLossesPerYear,
        chunksOf((region) => places[region]!.provider === name),
      ),
    ),
  ];
  const reasons = chunkRegion.map(() => 0);
  let losses = 0;
  for (;;) {
    const next = parts.reduce((a, b) => (a.nextYear <= b.nextYear ? a : b));
    if (next.nextYear > years) return losses;
    const before = reasons.filter((count) => count > 0).length;
    next.failed = !next.failed;
    for (const chunk of next.takes) reasons[chunk]! += next.failed ? 1 : -1;
    next.nextYear += draw(next.failed ? repairs : next.rate);
    if (before <= m && reasons.filter((count) => count > 0).length > m) losses++;
  }
}
