/** Placement: which region holds which chunk, and how many losses a layout survives. */
import { AgaroseError } from "../errors.ts";
import { crc32 } from "./crc32.ts";
import type { Code } from "./manifest/index.ts";

/** A region and its failure domain: the provider. */
export interface PlacementRegion {
  readonly name: string;
  readonly provider: string;
  /** Milliseconds to the first byte, as the audience sees it. Default: nearer than any that has one. */
  readonly latencyMs?: number | undefined;
}

/** How many regions, or providers, may fail at once (the worst ones) with every object still readable. */
export interface Survival {
  readonly regions: number;
  readonly providers: number;
}

/** Returns the region of each of the n chunks, by name, in chunk order. */
export type Placement = (code: Code, regions: readonly PlacementRegion[], key: string) => string[];

/**
 * Puts chunk i in region i mod R: Agar's layout (section V-A), and the default. Throws CONFIG_INVALID without a
 * region.
 */
export const roundRobin: Placement = (code, regions) => {
  if (regions.length === 0) throw new AgaroseError("CONFIG_INVALID", "no region is configured: at least 1 is needed");
  return Array.from({ length: code.k + code.m }, (_, chunk) => regions[chunk % regions.length]!.name);
};

/**
 * Spreads chunks over regions and providers, for codes with fewer chunks than regions: the next chunk goes to a region
 * with the fewest chunks, of these to a provider with the fewest, of these to the nearest. Equals take turns by key.
 * The nearest of all places have the data chunks, which ranges ask for alone and reads need not decode. Throws
 * CONFIG_INVALID without a region.
 */
export const spread: Placement = (code, regions, key) => {
  const turn = crc32(new TextEncoder().encode(key)) % Math.max(1, regions.length);
  const places = [...regions.slice(turn), ...regions.slice(0, turn)]
    .toSorted(byLatency)
    .map((region) => ({ ...region, chunks: 0 }));
  if (places.length === 0) return roundRobin(code, regions, key);
  const ofProvider = (provider: string): number =>
    places.reduce((sum, place) => sum + (place.provider === provider ? place.chunks : 0), 0);
  const filled = Array.from({ length: code.k + code.m }, () => {
    const [next] = places.toSorted((a, b) => a.chunks - b.chunks || ofProvider(a.provider) - ofProvider(b.provider));
    next!.chunks++;
    return next!;
  });
  return filled.toSorted(byLatency).map(({ name }) => name);
};

function byLatency(a: PlacementRegion, b: PlacementRegion): number {
  return (a.latencyMs ?? 0) - (b.latencyMs ?? 0);
}

/** Returns what a placement survives: at least k chunks must remain after the loss of the fullest domains. */
export function survives(code: Code, placement: readonly string[], regions: readonly PlacementRegion[]): Survival {
  const providerOf = new Map(regions.map((region) => [region.name, region.provider]));
  return {
    regions: lossesSurvived(code.m, placement),
    providers: lossesSurvived(
      code.m,
      placement.map((region) => providerOf.get(region) ?? region),
    ),
  };
}

/** Throws LAYOUT_UNSAFE, with both numbers, if a layout survives less than what is promised. */
export function checkSurvival(
  code: Code,
  placement: readonly string[],
  regions: readonly PlacementRegion[],
  promised: Survival,
): void {
  const actual = survives(code, placement, regions);
  for (const domain of ["regions", "providers"] as const) {
    if (actual[domain] >= promised[domain]) continue;
    throw new AgaroseError(
      "LAYOUT_UNSAFE",
      `${code.k}+${code.m} over ${new Set(placement).size} regions survives the loss of ${actual[domain]} ${domain}, ` +
        `${promised[domain]} is promised: use more parity or more ${domain}, or promise less`,
      { domain, survives: actual[domain], promised: promised[domain] },
    );
  }
}

/** Returns how many domains, the fullest first, can fail before more than m chunks are lost. */
function lossesSurvived(m: number, domains: readonly string[]): number {
  const counts = new Map<string, number>();
  for (const domain of domains) counts.set(domain, (counts.get(domain) ?? 0) + 1);
  let lost = 0;
  let survived = 0;
  for (const count of [...counts.values()].toSorted((a, b) => b - a)) {
    lost += count;
    if (lost > m) break;
    survived++;
  }
  return survived;
}
