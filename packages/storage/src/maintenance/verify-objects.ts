/** A walk that checks objects, and says of each what is damaged and whether it still reads. */
import type { WriteContext } from "../commit/write-context.ts";
import { verifyWithHistory } from "../history/kept-versions.ts";
import { isForgotten, quickKinds, quickVerdict } from "../listing/listed-verdict.ts";
import { walkObjects, type Walk, type WalkOptions } from "../listing/walk-objects.ts";
import {
  hasKeptDamage,
  refuseUnknown,
  stateOf,
  unreachableRegions,
  withUnreachable,
  type ObjectVerdict,
  type UnreachableRegion,
} from "../objects/verify-object.ts";

/** The objects to check, and how. */
export interface VerifyOptions extends WalkOptions {
  /** Whether to trust listings in place of reading every byte. Default: false. */
  readonly quick?: boolean;
  /** Called with each object, except those that were removed and have left nothing damaged. */
  readonly onVerdict: (verdict: ObjectVerdict) => Promise<void>;
}

/** Sums over the objects that were checked. */
export interface VerifyTotals {
  readonly objects: number;
  readonly unsound: number;
  /** Objects with missing or wrong bytes, the unreadable ones included. */
  readonly damaged: number;
  readonly unreadable: number;
  /** Objects without known damage that could not be checked in full. */
  readonly unchecked: number;
  readonly regionsUnreachable: readonly UnreachableRegion[];
}

const NONE: VerifyTotals = { objects: 0, unsound: 0, damaged: 0, unreadable: 0, unchecked: 0, regionsUnreachable: [] };
const OBJECTS_AT_A_TIME = 2;
const OBJECTS_AT_A_TIME_QUICK = 16;

/**
 * Walks once, and writes nothing.
 *
 * @throws OBJECT_NOT_FOUND for a given key that no region has, and as `walkObjects` does.
 */
export function verifyObjects(options: VerifyOptions, context: WriteContext): Promise<VerifyTotals> {
  const { quick = false, onVerdict } = options;
  const walk: Walk<ObjectVerdict, VerifyTotals> = {
    name: quick ? "verify quick" : "verify",
    options,
    ...(quick && { kinds: quickKinds(context.config) }),
    objectsAtATime: quick ? OBJECTS_AT_A_TIME_QUICK : OBJECTS_AT_A_TIME,
    async act(key, group) {
      const listed = quick && group ? await quickVerdict(group, context) : undefined;
      const verdict = listed ?? (await verifyWithHistory(key, context, quick));
      if (!group) refuseUnknown([verdict]);
      if (group && isForgotten(group, verdict)) return undefined;
      return group && verdict.removed && !hasKeptDamage(verdict) ? undefined : verdict;
    },
    add,
    onResult: onVerdict,
  };
  return walkObjects(walk, NONE, context);
}

function add(totals: VerifyTotals, verdict: ObjectVerdict): VerifyTotals {
  const state = stateOf(verdict);
  return {
    objects: totals.objects + 1,
    unsound: totals.unsound + (verdict.sound ? 0 : 1),
    damaged: totals.damaged + (state === "damaged" || state === "unreadable" ? 1 : 0),
    unreadable: totals.unreadable + (state === "unreadable" ? 1 : 0),
    unchecked: totals.unchecked + (state === "unchecked" ? 1 : 0),
    regionsUnreachable: withUnreachable(totals.regionsUnreachable, unreachableRegions([verdict])),
  };
}
