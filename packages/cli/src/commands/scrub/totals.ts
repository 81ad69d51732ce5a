/**
 * What a scrub has found and done so far. It is kept in the cursor file, so it is plain JSON.
 */
import { stateOf, unreachableRegions, type UnreachableRegion } from "../../lib/objects/verdicts.ts";
import type { ObjectVerdict } from "../../lib/objects/verify-object.ts";
import type { RepairOutcome } from "../../lib/objects/repair/repair-outcome.ts";
import type { ReadCost } from "./deep-reads.ts";
import { countRedundancy, type Redundancy } from "./redundancy.ts";

/** An object of the walk. */
export interface Found {
  readonly verdict: ObjectVerdict;
  /** Whether the repair queue names it. */
  readonly isQueued: boolean;
  /** Bytes of chunks that were read to hash them, and their price. Then the repair reads too. Default: none. */
  readonly read?: ReadCost;
  /** Whether it was to be read, and the money did not last. */
  readonly isUnread?: boolean;
}

/** Counts of objects. */
export interface Totals {
  readonly objects: number;
  readonly repaired: number;
  /** Still damaged after the repair, or found so by a dry run. */
  readonly damaged: number;
  /** Could not be repaired. */
  readonly failed: number;
  /** Without known damage, but a region did not answer. */
  readonly unchecked: number;
  /** Bytes of chunks that were read to hash them, and their price in US dollars. */
  readonly readBytes: number;
  readonly readUsd: number;
  /** Objects that were to be read, and the money did not last. */
  readonly unread: number;
  /** As they were found. */
  readonly found: Redundancy;
  /** After repairs. */
  readonly left: Redundancy;
  readonly regionsUnreachable: readonly UnreachableRegion[];
}

/** Nothing yet. */
export const NONE: Totals = {
  objects: 0,
  repaired: 0,
  damaged: 0,
  failed: 0,
  unchecked: 0,
  readBytes: 0,
  readUsd: 0,
  unread: 0,
  found: {},
  left: {},
  regionsUnreachable: [],
};

/** Adds an object as it was found. */
export function addFound(totals: Totals, { verdict, read, isUnread = false }: Found): Totals {
  if (verdict.removed) return totals;
  return {
    ...totals,
    objects: totals.objects + 1,
    unchecked: totals.unchecked + (stateOf(verdict) === "unchecked" ? 1 : 0),
    readBytes: totals.readBytes + (read?.bytes ?? 0),
    readUsd: totals.readUsd + (read?.usd ?? 0),
    unread: totals.unread + (isUnread ? 1 : 0),
    found: countRedundancy(totals.found, verdict.beyondK, 1),
    left: countRedundancy(totals.left, verdict.beyondK, 1),
    regionsUnreachable: withRegions(totals, verdict),
  };
}

/** Adds what came of the repair of an object that was found as `before`. */
export function addOutcome(
  totals: Totals,
  before: Pick<ObjectVerdict, "removed" | "beyondK">,
  object: RepairOutcome,
): Totals {
  if (object.outcome === "failed") return { ...totals, failed: totals.failed + 1 };
  const { outcome, after } = object;
  const rest = before.removed ? totals.left : countRedundancy(totals.left, before.beyondK, -1);
  return {
    ...totals,
    ...(outcome !== "sound" && { [outcome]: totals[outcome] + 1 }),
    left: after.removed ? rest : countRedundancy(rest, after.beyondK, 1),
    regionsUnreachable: withRegions(totals, after),
  };
}

function withRegions({ regionsUnreachable }: Totals, verdict: ObjectVerdict): readonly UnreachableRegion[] {
  const known = new Set(regionsUnreachable.map(({ region }) => region));
  return [...regionsUnreachable, ...unreachableRegions([verdict]).filter(({ region }) => !known.has(region))];
}
