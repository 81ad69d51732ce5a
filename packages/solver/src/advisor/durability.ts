/**
 * How often an object can be read, and how likely it is lost within a year.
 *
 * Providers, regions and chunks are components that fail at a rate and are repaired at another, each on its own. A
 * chunk is lost while it, its region or its provider is. The object is lost when more than m of its chunks are lost
 * at once. In the steady state that happens with the frequency
 *
 *     sum over components i of  rate_i * P(i works) * (P(lost | i failed) - P(lost | i works))
 *
 * The difference is Birnbaum's importance of a component (Birnbaum, "On the importance of different components in a
 * multicomponent system", 1969); Trivedi and Bobbio, "Reliability and Availability Engineering", 2017, section 4.6,
 * has the frequency. It exceeds the frequency of the first loss by less than a factor 1 + rate / repair rate.
 */

/** A region that holds chunks of an object. */
export interface ChunkPlace {
  readonly provider: string;
  /** How many of the object's chunks it holds. */
  readonly chunks: number;
}

/** How often things fail, and how soon they are repaired. All rates are per year, above or equal to 0. */
export interface FailureModel {
  /** Share of the time in which a region does not answer, from 0 to 1. */
  readonly regionDown: number;
  /** Share of the time in which all regions of a provider do not answer. */
  readonly providerDown: number;
  /** Losses of one chunk: what the store's own redundancy does not prevent. */
  readonly chunkLossesPerYear: number;
  /** Losses of all that a region holds: a deleted bucket, a fire. */
  readonly regionLossesPerYear: number;
  /** Losses of all that a provider holds: a closed account, a stolen key. */
  readonly providerLossesPerYear: number;
  /** Mean days until a loss is found and repaired, above 0: the interval of `agarose repair`, and its run. */
  readonly repairDays: number;
}

/**
 * The assumptions by default. Regions: the 99.9% of common service level agreements. Chunks: the eleven nines that
 * object stores are designed for. Losses of regions and providers: one in a thousand and in ten thousand years.
 */
export const FAILURES_DEFAULT: FailureModel = {
  regionDown: 1e-3,
  providerDown: 1e-4,
  chunkLossesPerYear: 1e-11,
  regionLossesPerYear: 1e-3,
  providerLossesPerYear: 1e-4,
  repairDays: 7,
};

const DAYS_PER_YEAR = 365.25;

/** Probability that more than `m` chunks are out of reach at a moment, so that an object cannot be read. */
export function unavailability(places: readonly ChunkPlace[], m: number, failures: FailureModel): number {
  const { regionDown, providerDown } = failures;
  return lossProbability(places, m, { chunk: 0, region: regionDown, provider: providerDown });
}

/** Expected losses of an object per year; nearly the probability of one when it is small. */
export function lossesPerYear(places: readonly ChunkPlace[], m: number, failures: FailureModel): number {
  const { chunkLossesPerYear, regionLossesPerYear, providerLossesPerYear, repairDays } = failures;
  const repairsPerYear = DAYS_PER_YEAR / repairDays;
  const failed = (rate: number): number => rate / (rate + repairsPerYear);
  const share = {
    chunk: failed(chunkLossesPerYear),
    region: failed(regionLossesPerYear),
    provider: failed(providerLossesPerYear),
  };
  const frequency = (rate: number, probability: number, component: Component, count: number): number => {
    if (rate === 0) return 0;
    const lost = lossProbability(places, m, share, component, true);
    return rate * (1 - probability) * count * (lost - lossProbability(places, m, share, component, false));
  };
  let sum = 0;
  for (const [region, { chunks }] of places.entries()) {
    sum += frequency(regionLossesPerYear, share.region, { kind: "region", region }, 1);
    // Chunks of one region are alike.
    if (chunks > 0) sum += frequency(chunkLossesPerYear, share.chunk, { kind: "chunk", region }, chunks);
  }
  for (const provider of new Set(places.map((place) => place.provider))) {
    sum += frequency(providerLossesPerYear, share.provider, { kind: "provider", provider }, 1);
  }
  return sum;
}

/** How many nines a probability of failure leaves: 0.001 leaves 3. At most 99. */
export function nines(probability: number): number {
  return probability <= 1e-99 ? 99 : Math.max(0, -Math.log10(probability));
}

/** The share of the time in which a component is failed, by what it is. */
interface Shares {
  readonly chunk: number;
  readonly region: number;
  readonly provider: number;
}

type Component =
  | { readonly kind: "chunk" | "region"; readonly region: number }
  | { readonly kind: "provider"; readonly provider: string };

/** P(more than m chunks are lost), where one component may be known to have failed or to work. */
function lossProbability(
  places: readonly ChunkPlace[],
  m: number,
  share: Shares,
  known?: Component,
  hasFailed = false,
): number {
  const certain = hasFailed ? 1 : 0;
  let counts = [1];
  for (const [provider, own] of Map.groupBy(places.keys(), (region) => places[region]!.provider)) {
    let working = [1];
    let all = 0;
    for (const region of own) {
      const { chunks } = places[region]!;
      const isRegion = known?.kind === "region" && known.region === region;
      const isChunk = known?.kind === "chunk" && known.region === region;
      const regionShare = isRegion ? certain : share.region;
      const single = isChunk
        ? convolve(binomial(chunks - 1, share.chunk), [1 - certain, certain])
        : binomial(chunks, share.chunk);
      working = convolve(working, mix(single, chunks, regionShare));
      all += chunks;
    }
    const isProvider = known?.kind === "provider" && known.provider === provider;
    counts = convolve(counts, mix(working, all, isProvider ? certain : share.provider));
  }
  // The tail is summed, because one minus the rest would lose what is small.
  return counts.slice(m + 1).reduceRight((sum, probability) => sum + probability, 0);
}

/** The distribution that is `counts` with probability 1 - `share`, else all `most`. */
function mix(counts: readonly number[], most: number, share: number): number[] {
  const mixed = counts.map((probability) => probability * (1 - share));
  mixed[most] = (mixed[most] ?? 0) + share;
  return mixed;
}

function convolve(a: readonly number[], b: readonly number[]): number[] {
  const sum = Array.from({ length: a.length + b.length - 1 }, () => 0);
  for (const [i, p] of a.entries()) for (const [j, q] of b.entries()) sum[i + j]! += p * q;
  return sum;
}

/** Probabilities of 0 to `count` failures of independent components. */
function binomial(count: number, share: number): number[] {
  let counts = [1];
  for (let one = 0; one < count; one++) counts = convolve(counts, [1 - share, share]);
  return counts;
}
