/**
 * `agarose verify`: reads every stored byte of objects and says what is damaged and what still reads.
 */
import { READING, withReport } from "../../lib/context.ts";
import {
  hasKeptDamage,
  refuseUnknown,
  stateOf,
  unreachableRegions,
  withUnreachable,
  type UnreachableRegion,
} from "@agarose/storage/objects/verdicts";
import { unreachableLine, verdictLines } from "../../ui/verdict-lines.ts";
import { EXIT_FAILED, EXIT_OK, formatCount, logLine } from "../../ui/output.ts";
import { verifyWithHistory } from "@agarose/storage/history/verify-history";
import type { ObjectVerdict } from "@agarose/storage/objects/verify-object";
import { quickKinds, quickVerdict } from "@agarose/storage/listing/listed-verdict";
import { walkObjects, type Walk } from "@agarose/storage/listing/walk-objects";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** The options of `agarose verify`. */
export type VerifyOptions = Values<typeof args>;

interface Totals {
  readonly objects: number;
  readonly unsound: number;
  /** Objects with missing or wrong bytes, the unreadable ones included. */
  readonly damaged: number;
  readonly unreadable: number;
  /** Objects without known damage that could not be checked in full. */
  readonly unchecked: number;
  readonly regionsUnreachable: readonly UnreachableRegion[];
}

const NONE: Totals = { objects: 0, unsound: 0, damaged: 0, unreadable: 0, unchecked: 0, regionsUnreachable: [] };
const OBJECTS_AT_A_TIME = 2;
const OBJECTS_AT_A_TIME_QUICK = 16;

/** Runs `agarose verify`. The command exits with 1 when an object is damaged or a region did not answer. */
export async function verify({ keys, ...options }: VerifyOptions): Promise<number> {
  return withReport(options, READING, async (report, context) => {
    const quick = options.quick ?? false;
    const walk: Walk<ObjectVerdict, Totals> = {
      name: quick ? "verify quick" : "verify",
      keys,
      options,
      ...(quick && { kinds: quickKinds(context.config) }),
      objectsAtATime: quick ? OBJECTS_AT_A_TIME_QUICK : OBJECTS_AT_A_TIME,
      async act(key, group) {
        const listed = quick && group ? await quickVerdict(group, context) : undefined;
        const verdict = listed ?? (await verifyWithHistory(key, context, quick));
        if (!group) refuseUnknown([verdict]);
        return group && verdict.removed && !hasKeptDamage(verdict) ? undefined : verdict;
      },
      add: addVerdict,
      onResult: (verdict) => report.item({ ...verdict, state: stateOf(verdict) }, verdictLines(verdict)),
      onWarning: logLine,
    };
    const { objects, unsound, ...totals } = await walkObjects(walk, NONE, context);
    await report.end(totals, [...totals.regionsUnreachable.map(unreachableLine), summaryOf({ ...totals, objects })]);
    return unsound === 0 ? EXIT_OK : EXIT_FAILED;
  });
}

function addVerdict(totals: Totals, verdict: ObjectVerdict): Totals {
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

function summaryOf({ objects, damaged, unreadable, unchecked }: Omit<Totals, "unsound">): string {
  const rest = unchecked > 0 ? `, ${unchecked} not checked in full because a region did not answer` : "";
  return `${formatCount(objects, "object")}, ${damaged} damaged, ${unreadable} unreadable${rest}`;
}
