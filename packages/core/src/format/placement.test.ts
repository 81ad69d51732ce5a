import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { codeOf, errorOf } from "../../test/errors.ts";
import { checkSurvival, roundRobin, spread, survives, type PlacementRegion } from "./placement.ts";

function regionsOf(...providers: string[]): PlacementRegion[] {
  return providers.map((provider, i) => ({ name: `region-${i}`, provider }));
}

describe("roundRobin", () => {
  test("puts chunk i in region i modulo their number", () => {
    const regions = regionsOf("p", "p", "q");
    expect(roundRobin({ k: 3, m: 2 }, regions, "key")).toEqual([
      "region-0",
      "region-1",
      "region-2",
      "region-0",
      "region-1",
    ]);
  });

  test("refuses to place chunks without a region", () => {
    expect(codeOf(() => roundRobin({ k: 3, m: 2 }, [], "key"))).toBe("CONFIG_INVALID");
  });
});

describe("spread", () => {
  const measured = [40, 10, 30, 20].map((latencyMs, i) => ({ name: `region-${i}`, provider: `p${i}`, latencyMs }));

  test("puts the data chunks nearest and parity farthest, and survives as much", () => {
    const placement = spread({ k: 5, m: 3 }, measured, "key");
    expect(placement).toEqual([1, 1, 3, 3, 2, 2, 0, 0].map((i) => `region-${i}`));
    expect(survives({ k: 5, m: 3 }, placement, measured)).toEqual({ regions: 1, providers: 1 });
  });

  test("takes turns where no latency is known", () => {
    const regions = regionsOf("a", "b", "c");
    const placement = spread({ k: 4, m: 2 }, regions, "key");
    expect(new Set(placement.slice(0, 3)).size).toBe(3);
    expect(placement.slice(3)).toEqual(placement.slice(0, 3));
  });
});

describe("survives", () => {
  test("9+3 over six regions of three providers survives a region but no provider", () => {
    const regions = regionsOf("a", "a", "b", "b", "c", "c");
    const code = { k: 9, m: 3 };
    expect(survives(code, roundRobin(code, regions, ""), regions)).toEqual({ regions: 1, providers: 0 });
  });

  test("9+3 over twelve regions survives three of them", () => {
    const regions = regionsOf(..."abcdefghijkl");
    const code = { k: 9, m: 3 };
    expect(survives(code, roundRobin(code, regions, ""), regions)).toEqual({ regions: 3, providers: 3 });
  });

  test("a code without parity survives nothing", () => {
    const regions = regionsOf("a", "b");
    expect(survives({ k: 4, m: 0 }, roundRobin({ k: 4, m: 0 }, regions, ""), regions)).toEqual({
      regions: 0,
      providers: 0,
    });
  });

  test("counts a region that is not configured as a provider of its own", () => {
    expect(survives({ k: 1, m: 1 }, ["gone", "region-0"], regionsOf("a"))).toEqual({ regions: 1, providers: 1 });
  });

  test("agrees with the loss of every set of regions or providers", () => {
    const layouts = fc
      .record({
        k: fc.integer({ min: 1, max: 6 }),
        m: fc.integer({ min: 0, max: 5 }),
        providers: fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 5 }),
      })
      .chain(({ k, m, providers }) =>
        fc.record({
          code: fc.constant({ k, m }),
          regions: fc.constant(regionsOf(...providers)),
          spots: fc.array(fc.nat(providers.length - 1), { minLength: k + m, maxLength: k + m }),
        }),
      );
    fc.assert(
      fc.property(layouts, ({ code, regions, spots }) => {
        const placement = spots.map((spot) => regions[spot]!.name);
        const providers = spots.map((spot) => regions[spot]!.provider);
        expect(survives(code, placement, regions)).toEqual({
          regions: survivedByTrying(code.k, placement),
          providers: survivedByTrying(code.k, providers),
        });
      }),
    );
  });
});

describe("checkSurvival", () => {
  const regions = regionsOf("a", "a", "b", "b", "c", "c");
  const code = { k: 9, m: 3 };
  const placement = roundRobin(code, regions, "");

  test("accepts a promise that the layout keeps, and a smaller one", () => {
    checkSurvival(code, placement, regions, { regions: 1, providers: 0 });
    checkSurvival(code, placement, regions, { regions: 0, providers: 0 });
  });

  test("refuses a promise that the layout does not keep, with both numbers", () => {
    const error = errorOf(() => checkSurvival(code, placement, regions, { regions: 1, providers: 1 }));
    expect(error).toMatchObject({ code: "LAYOUT_UNSAFE", details: { domain: "providers", survives: 0, promised: 1 } });
    expect(error.message).toMatch(/9\+3 over 6 regions survives the loss of 0 providers, 1 is promised/);
  });
});

/** The largest t such that losing any t domains leaves at least k chunks: every set of domains is tried. */
function survivedByTrying(k: number, domains: readonly string[]): number {
  const names = [...new Set(domains)];
  let fewestFatal = names.length + 1;
  for (let set = 0; set < 1 << names.length; set++) {
    const lost = names.filter((_, i) => set & (1 << i));
    const left = domains.filter((domain) => !lost.includes(domain)).length;
    if (left < k) fewestFatal = Math.min(fewestFatal, lost.length);
  }
  return fewestFatal - 1;
}
