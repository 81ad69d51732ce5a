/** Findings and actions of a scrub so far. It is kept in the cursor file, so it is plain JSON. */
import * as v from "valibot";
import { stateOf, unreachableRegions, withUnreachable, type ObjectVerdict } from "../../objects/verify-object.ts";
import type { RepairOutcome } from "../../repair/repair-outcome.ts";
import { addNumbers } from "../add-numbers.ts";
import type { ReadCost } from "./deep-reads.ts";

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

const COUNTS_SHAPE = v.record(v.string(), v.number());

const TOTALS_SHAPE = v.object({
  objects: v.number(),
  repaired: v.number(),
  /** Still damaged after the repair, or found so by a dry run. */
  damaged: v.number(),
  /** Could not be repaired. */
  failed: v.number(),
  /** Without known damage, but a region did not answer. */
  unchecked: v.number(),
  /** Bytes of chunks that were read to hash them, and their price in US dollars. */
  readBytes: v.number(),
  readUsd: v.number(),
  /** Objects that were to be read, and the money did not last. */
  unread: v.number(),
  /** As they were found. */
  found: COUNTS_SHAPE,
  /** After repairs. */
  left: COUNTS_SHAPE,
  regionsUnreachable: v.pipe(v.array(v.object({ region: v.string(), problem: v.string() })), v.readonly()),
});

/** Counts of objects. */
export type Totals = Readonly<v.InferOutput<typeof TOTALS_SHAPE>>;

/** Totals that a different version may have kept. Undefined where this one cannot continue them. */
export function totalsOf(kept: unknown): Totals | undefined {
  const read = v.safeParse(TOTALS_SHAPE, kept);
  return read.success ? read.output : undefined;
}

/** Nothing yet. */
export const NO_TOTALS: Totals = {
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

/** The sum of two parts of a walk. */
export function addTotals(a: Totals, b: Totals): Totals {
  const { found, left, regionsUnreachable, ...numbers } = b;
  return {
    ...addNumbers(a, numbers),
    found: addNumbers(a.found, found),
    left: addNumbers(a.left, left),
    regionsUnreachable: withUnreachable(a.regionsUnreachable, regionsUnreachable),
  };
}

/** Adds an object as it was found. */
export function addFound(totals: Totals, { verdict, read, isUnread = false }: Found): Totals {
  if (verdict.removed) return totals;
  return {
    ...addNumbers(totals, {
      objects: 1,
      unchecked: stateOf(verdict) === "unchecked" ? 1 : 0,
      readBytes: read?.bytes ?? 0,
      readUsd: read?.usd ?? 0,
      unread: isUnread ? 1 : 0,
    }),
    found: countRedundancy(totals.found, verdict.beyondK, 1),
    left: countRedundancy(totals.left, verdict.beyondK, 1),
    regionsUnreachable: withUnreachable(totals.regionsUnreachable, unreachableRegions([verdict])),
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
    regionsUnreachable: withUnreachable(totals.regionsUnreachable, unreachableRegions([after])),
  };
}

/** Objects by chunks beyond k. `unreadable` are those that have fewer than k. */
type Redundancy = Readonly<Record<string, number>>;

/** The name of objects that cannot be read. */
export const UNREADABLE = "unreadable";

/** Adds an object, or with -1 takes it out. */
function countRedundancy(counts: Redundancy, beyondK: number, by: 1 | -1): Redundancy {
  return addNumbers(counts, { [beyondK < 0 ? UNREADABLE : String(beyondK)]: by });
}

/** How many more losses an object survives, of a chunk or of a manifest. Those that are lost already come last. */
export function lossesLeft({ beyondK, manifests }: ObjectVerdict): number {
  if (beyondK < 0) return Number.MAX_SAFE_INTEGER;
  return Math.min(beyondK, manifests.filter(({ state }) => state === "sound").length - 1);
}
