import { describe, expect, test } from "vitest";
import { seededRandom } from "../random.ts";
import { TraceBuilder } from "../traces/trace.ts";
import { advise, type AdviceRequest } from "./advise.ts";
import { dataOfLog } from "./log-data.ts";
import { judge, type Verdict } from "./verdict.ts";

const region = (name: string, ms: number): AdviceRequest["regions"][number] => ({
  name,
  latencyMs: { fra: ms },
  bandwidthMBps: 25,
  storagePerGbMonth: 0.02,
  getPerMillion: 0.4,
  egressPerGb: 0,
});

/** Much data that is read seldom: storage decides. */
const COLD: AdviceRequest = {
  regions: [region("a", 12), region("b", 12), region("c", 13), region("d", 14), region("e", 15), region("f", 16)],
  pops: [{ name: "fra", weight: 1, cacheLatencyMs: 4 }],
  data: { objects: 100_000_000, bytesPerObject: 1_000_000, readsPerMonth: 100_000, zipf: 0.6 },
  survive: { regions: 2, providers: 0 },
  codes: [
    [4, 2],
    [6, 3],
  ],
  cacheShares: [0, 0.0001],
};
/** A small site, which may be down for an outage. */
const SITE: AdviceRequest = {
  ...COLD,
  data: { objects: 1_000, bytesPerObject: 100_000, readsPerMonth: 1_000_000 },
  survive: { regions: 0, providers: 0 },
};

const verdictOf = (request: AdviceRequest): Verdict => judge(request, advise(request));

describe("the verdict", () => {
  test("much cold data that must survive two regions: use it, because copies cost twice as much", () => {
    const { use, why, oneCopy, coded, instead } = verdictOf(COLD);
    expect({ use, instead }).toEqual({ use: true, instead: undefined });
    expect(oneCopy).toMatchObject({ k: 1, m: 0, survives: false });
    expect(coded!.costPerMonth).toBeLessThan(2 * oneCopy.costPerMonth);
    expect(coded!.availabilityNines).toBeGreaterThan(oneCopy.availabilityNines);
    expect(why).toMatch(/^\d\+\d over .* one copy behind a CDN in .* does not survive the losses that you named$/);
  });

  test("a small site that may be down: do not use it, one copy behind a CDN is as fast and no dearer", () => {
    const { use, why, instead, oneCopy } = verdictOf(SITE);
    expect(use).toBe(false);
    expect(instead).toMatchObject({ k: 1, m: 0, survives: true });
    expect(oneCopy.costPerMonth).toBeLessThan(1);
    expect(why).toMatch(/^one copy in \w behind a CDN reads in [\d.]+ ms for \$[\d.]+ a month with 3\.0 nines; /);
  });

  test("a small site that must survive a region: copies behind a CDN instead", () => {
    const { use, instead, oneCopy } = verdictOf({ ...SITE, survive: { regions: 1, providers: 0 } });
    expect({ use, survives: oneCopy.survives }).toEqual({ use: false, survives: false });
    expect(instead).toMatchObject({ k: 1, survives: true });
    expect(instead!.m).toBeGreaterThan(0);
  });
});

describe("the data of a log", () => {
  const logOf = (lines: readonly string[]): ReturnType<TraceBuilder["finish"]> => {
    const builder = new TraceBuilder();
    builder.begin("the.log", "csv");
    for (const line of lines) {
      const [key, seconds, bytes] = line.split(",");
      builder.add({ key, seconds, bytes });
    }
    return builder.finish();
  };

  test("is its objects, their mean size, and its reads scaled to a month", () => {
    const data = dataOfLog(logOf(["a,0,100", "b,43200,300", "a,86400,100"]));
    expect(data).toMatchObject({ objects: 2, bytesPerObject: 200, readsPerMonth: 91 });
  });

  test("has the exponent that the reads were drawn by, within a tenth", () => {
    const seed = 7;
    const { next } = seededRandom(seed);
    for (const exponent of [0.6, 0.9, 1.2]) {
      const weights = Array.from({ length: 300 }, (_, rank) => (rank + 1) ** -exponent);
      const sum = weights.reduce((a, b) => a + b, 0);
      const draw = (): number => {
        let left = next() * sum;
        return Math.max(
          0,
          weights.findIndex((weight) => (left -= weight) <= 0),
        );
      };
      const lines = Array.from({ length: 20_000 }, (_, second) => `k${draw()},${second},1000`);
      expect(Math.abs(dataOfLog(logOf(lines)).zipf! - exponent), `seed ${seed}`).toBeLessThanOrEqual(0.1);
    }
  });

  test("in which no time passes is refused", () => {
    expect(() => dataOfLog(logOf(["a,5,1", "b,5,1"]))).toThrow(/2 reads within 0 s/);
  });
});
