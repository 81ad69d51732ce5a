/** Whether coded objects are worth it, beside whole copies behind a CDN. Pure. */
import { CACHE_SHARES, layoutsOf, rate, shortlist } from "./advise.ts";
import type { Advice, AdviceRequest, Layout, Rated } from "./advise.ts";

/** Whole copies behind a CDN. */
export interface Baseline extends Rated {
  /** Whether it survives the losses that the request names. */
  readonly survives: boolean;
}

/** The answer to "should I use this?" */
export interface Verdict {
  readonly use: boolean;
  /** One sentence, with both figures. */
  readonly why: string;
  /** One copy behind a CDN, in the cheapest of the regions that are read about as fast as the fastest. */
  readonly oneCopy: Baseline;
  /** The copies behind a CDN that are neither slower nor dearer; undefined when codes are worth it. */
  readonly instead: Baseline | undefined;
  /** The cheapest coded layout that nothing matches, else the fastest one; undefined when no code is efficient. */
  readonly coded: Advice | undefined;
}

/** A system of one's own has to be better by this share, in time or in money. */
const WORTH_SHARE = 0.05;
/** And by this much money a month, in US dollars. */
const WORTH_USD = 5;
/** Sets of copies that are simulated (`shortlist`). */
const SHORTLIST = 4;

/**
 * Compares coded layouts with one, two and three whole copies behind a CDN, whose cache is as large and costs nothing.
 * Codes are worth it when one of them is not matched, in both time and money, by copies that survive as much.
 *
 * @param advice what `advise` has returned for the request.
 */
export function judge(request: AdviceRequest, advice: readonly Advice[]): Verdict {
  const cacheShare = Math.max(...(request.cacheShares ?? CACHE_SHARES));
  const singles = layoutsOf({ ...request, codes: [[1, 0]], survive: { regions: 0, providers: 0 } });
  const needsNone = request.survive.regions === 0 && request.survive.providers === 0;
  const asBaseline = (layout: Layout, survives: boolean): Baseline => ({
    ...rate(request, layout, cacheShare, "free"),
    survives,
  });
  const ones = singles.map((layout) => asBaseline(layout, needsNone));
  const oneCopy = sensible(ones);
  const twoOrThree: AdviceRequest["codes"] = [1, 2].map((m) => [1, m]);
  const copies = shortlist(layoutsOf({ ...request, codes: twoOrThree }), SHORTLIST).map((layout) =>
    asBaseline(layout, true),
  );
  const rivals = [...(needsNone ? ones : []), ...copies];
  const codes = advice.filter(({ k, isEfficient }) => k > 1 && isEfficient);
  const matchOf = (coded: Advice): Baseline | undefined => {
    const matching = rivals.filter(
      (rival) =>
        rival.meanMs * (1 - WORTH_SHARE) <= coded.meanMs &&
        rival.costPerMonth <= Math.max(coded.costPerMonth / (1 - WORTH_SHARE), coded.costPerMonth + WORTH_USD),
    );
    return matching.length > 0 ? cheapest(matching) : undefined;
  };
  const unmatched = codes.filter((coded) => matchOf(coded) === undefined);
  if (unmatched.length > 0) {
    const coded = cheapest(unmatched);
    return { use: true, why: whyUse(coded, oneCopy), oneCopy, instead: undefined, coded };
  }
  const coded = codes.length > 0 ? fastest(codes) : undefined;
  const instead = coded ? matchOf(coded)! : sensible(rivals.length > 0 ? rivals : ones);
  return { use: false, why: whyNot(coded, instead), oneCopy, instead, coded };
}

function fastest<T extends Rated>(rows: readonly T[]): T {
  return rows.reduce((a, b) => (b.meanMs < a.meanMs ? b : a));
}

function cheapest<T extends Rated>(rows: readonly T[]): T {
  return rows.reduce((a, b) => (b.costPerMonth < a.costPerMonth ? b : a));
}

/** The cheapest of those that are about as fast as the fastest. */
function sensible<T extends Rated>(rows: readonly T[]): T {
  const limitMs = fastest(rows).meanMs / (1 - WORTH_SHARE);
  return cheapest(rows.filter(({ meanMs }) => meanMs <= limitMs));
}

function whyUse(coded: Advice, oneCopy: Baseline): string {
  const survival = oneCopy.survives ? "" : ", but does not survive the losses that you named";
  return `${nameOf(coded)} reads in ${figures(coded)}; one copy behind a CDN in ${figures(oneCopy)}${survival}`;
}

function whyNot(coded: Advice | undefined, instead: Baseline): string {
  const other = coded ? `; ${nameOf(coded)} in ${figures(coded)}` : "; no code over these regions is better";
  return `${nameOf(instead)} behind a CDN reads in ${figures(instead)}${other}`;
}

function nameOf({ k, m, regions }: Rated): string {
  const where = regions.join(", ");
  if (k > 1) return `${k}+${m} over ${where}`;
  return m === 0 ? `one copy in ${where}` : `${m + 1} copies in ${where}`;
}

function figures({ meanMs, costPerMonth, availabilityNines }: Rated): string {
  return `${meanMs.toFixed(1)} ms for $${costPerMonth.toFixed(2)} a month with ${availabilityNines.toFixed(1)} nines`;
}
