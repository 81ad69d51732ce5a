/**
 * Placement: which region holds which chunk, and what a layout survives.
 */
import { AgaroseError } from "../errors.ts";
import type { Code } from "./manifest.ts";

/** A bucket of chunks, inside a failure domain: its provider. */
export interface PlacementRegion {
  readonly name: string;
  readonly provider: string;
}

/** How many regions, or providers, may be lost at once (the worst ones) with every object still readable. */
export interface Survival {
  readonly regions: number;
  readonly providers: number;
}

export type Placement = (code: Code, regions: readonly PlacementRegion[], key: string) => string[];

/** Chunk i in region i mod R: Agar's layout (section V-A), the default. */
export const roundRobin: Placement = (code, regions) => {
  if (regions.length === 0) throw new AgaroseError("CONFIG_INVALID", "no region is configured: at least 1 is needed");
  return Array.from({ length: code.k + code.m }, (_, chunk) => regions[chunk % regions.length]!.name);
};

/** What a placement survives: with the most loaded domains gone, at least k chunks must remain. */
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

/** Refuses a layout that does not survive what was promised, with LAYOUT_UNSAFE and both numbers. */
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

/** The most domains that can go before more than m chunks are lost, taking the fullest first. */
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
