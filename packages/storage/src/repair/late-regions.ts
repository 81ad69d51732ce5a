/**
 * Completes what late regions were left out of, once the other objects of a command are stored.
 *
 * A put does not wait for a region that hangs while the others suffice, and those beside it leave the region out for 30
 * seconds. One request that took a moment too long would cost a region the chunks of them all, until a repair.
 */
import { withNewBreaker } from "../commit/write-context.ts";
import type { PutResult } from "../objects/put-object.ts";
import { mapAdaptive } from "../listing/adaptive-pool.ts";
import type { DeploymentParts } from "../parts.ts";
import { unitsOf, widthOf } from "../upload/put-options.ts";
import { repairOne } from "./repair-outcome.ts";

/** Small objects at a time. Each asks all regions several times, one after the other, so it mostly waits. */
const WIDTH = 16;
/** How much of that a large object takes. */
const UNITS_MAX = 4;

/** Part of a put's result. */
type Stored = Pick<PutResult, "key" | "bytes" | "placement" | "missing" | "regionsWithoutManifest">;

/**
 * Repairs the objects that lack something in regions which took another object's share, and returns those that lack
 * nothing any more, by key. A region that fails again is left for `agarose repair`, and so is the rest when the caller
 * aborts: the objects are stored, and their results must not get lost.
 */
export async function completeLate(results: readonly Stored[], context: DeploymentParts): Promise<ReadonlySet<string>> {
  const lacking = results.map((result) => ({ ...result, regions: regionsLacking(result) }));
  const waiting = lacking.filter(({ regions }) => regions.size > 0);
  const complete = new Set<string>();
  if (waiting.length === 0) return complete;
  const { regions } = context.config;
  const answering = new Set(
    regions.map(({ name }) => name).filter((name) => lacking.some((other) => !other.regions.has(name))),
  );
  const own = withNewBreaker(context);
  const isWorthATry = (late: ReadonlySet<string>): boolean => [...late].every((name) => answering.has(name));
  const unitsIn = ({ bytes }: Stored): number => Math.min(UNITS_MAX, unitsOf(bytes));
  try {
    await mapAdaptive(waiting, widthOf(WIDTH), unitsIn, async ({ key, regions: late }) => {
      if (!isWorthATry(late)) return;
      const { outcome } = await repairOne(key, own, { quick: true });
      if (outcome === "repaired" || outcome === "sound") complete.add(key);
      else for (const name of late) answering.delete(name);
    });
  } catch (error) {
    if (!context.signal.aborted) throw error;
  }
  return complete;
}

/** Regions without a chunk or without the manifest of an object. */
function regionsLacking({ placement, missing, regionsWithoutManifest }: Stored): ReadonlySet<string> {
  return new Set([
    ...missing.flatMap((chunk) => placement[chunk] ?? []),
    ...regionsWithoutManifest.map(({ region }) => region),
  ]);
}
