/** Which estimates of the regions to plan by: those of before, until a region has changed by more than estimates wobble. Pure. */
import type { RegionEstimate } from "../../state/configuration.ts";

/** A change of mean and deviation together, as a share of the mean. */
const WORTH_NOTICING = 0.05;

/** `before` itself when no region has changed. */
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
