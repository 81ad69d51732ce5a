/** The estimates to plan by: the previous ones, until a region changes by more than estimates fluctuate. Pure. */
import type { RegionEstimate } from "../options/sources.ts";

/** A change of mean and deviation together that matters, as a share of the mean. */
const WORTH_NOTICING = 0.05;

/** Returns `before` itself when no region has changed. */
export function holdRegions(
  before: readonly RegionEstimate[],
  measured: readonly RegionEstimate[],
): readonly RegionEstimate[] {
  const known = new Map(before.map((region) => [region.name, region]));
  const held = measured.map((region) => {
    const old = known.get(region.name);
    return old && !hasChanged(old, region) ? old : region;
  });
  const isSame = held.length === before.length && held.every((region, i) => region === before[i]);
  return isSame ? before : held;
}

function hasChanged(old: RegionEstimate, now: RegionEstimate): boolean {
  if (old.down !== now.down) return true;
  const change = Math.abs(now.meanMs - old.meanMs) + Math.abs(now.sdMs - old.sdMs);
  return change > WORTH_NOTICING * old.meanMs;
}
