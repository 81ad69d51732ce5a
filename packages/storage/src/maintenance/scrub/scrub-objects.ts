/** One walk of a scrub: it looks at every object by listings, reads those in full whose turn it is, and repairs. */
import type { DeploymentParts } from "../../parts.ts";
import { verifyWithHistory } from "../../history/kept-versions.ts";
import { hasKeptDamage } from "../../objects/verify-object.ts";
import type { KeyGroup } from "../../listing/key-groups.ts";
import { quickKinds, quickVerdict } from "../../listing/listed-verdict.ts";
import type { Cursor } from "../../listing/walk-cursor.ts";
import { walkObjects, type Walk, type WalkOptions } from "../../listing/walk-objects.ts";
import { DamagedSpan, type SpanOptions } from "./damaged-span.ts";
import { deepReads, type DeepOptions } from "./deep-reads.ts";
import { keysBehind } from "../../pops/pop-client.ts";
import { addFound, NO_TOTALS, type Found, type Totals } from "./totals.ts";

interface ScrubOptions extends WalkOptions, Pick<SpanOptions, "onDamaged" | "onRepair" | "chunkBytesMax"> {
  /** Whether to report what is damaged in place of repairing it. Default: false. */
  readonly dryRun?: boolean;
  /** Called for each key that is listed. */
  readonly onGroup?: (group: KeyGroup) => void;
  /** The objects to read in full. Default: none. */
  readonly deep?: DeepOptions;
  /** Walks a part of the objects only. Default: all of them. */
  readonly part?: ScrubPart;
}

/** A part of a walk, for a runtime that does not let a program run for hours. */
export interface ScrubPart {
  /** Where the walk is, in place of a file. */
  readonly cursor: Cursor<Totals>;
  /** Objects of the part, at most. */
  readonly objectsMax: number;
  /** The part ends with so many damaged objects, which are repaired then. */
  readonly damagedMax: number;
  /** Objects that are looked at, at a time. */
  readonly looks: number;
  /** Objects that are repaired at a time. */
  readonly width: number;
  /** The last key of the walk. Default: there is none. */
  readonly until?: string | undefined;
  /** Keys that PoPs have found regions to lack. Default: each part asks the PoPs. */
  readonly behind?: readonly string[];
}

const OBJECTS_AT_A_TIME = 16;

/**
 * Walks once.
 *
 * @throws SOURCE_FAILED, STORE_FAILED or CREDENTIALS_REFUSED when no region can be listed, USAGE when the cursor is of
 *   another walk or a price is missing, DISK_FULL when the cursor cannot be written.
 */
export async function scrubObjects(options: ScrubOptions, context: DeploymentParts): Promise<Totals> {
  const { dryRun = false, part, onDamaged, onRepair, chunkBytesMax } = options;
  const deep = deepReads(options.deep ?? {}, context);
  const span = new DamagedSpan(
    { dryRun, onDamaged, onRepair, chunkBytesMax, ...(part && { width: part.width }) },
    context,
  );
  // Keys that PoPs have found missing in regions: they cannot write to the repair queue.
  const behind = new Set(part?.behind ?? (await keysBehind(context.config.pops)));
  const look = async (group: KeyGroup): Promise<Found> => {
    const { key } = group;
    const isQueued = group.repairs.length > 0 || behind.has(key);
    const listed = await quickVerdict(group, context);
    const verdict = listed ?? (await verifyWithHistory(key, context, true));
    if (!verdict.sound || verdict.chunks === 0 || !deep.isDue(group)) return { verdict, isQueued };
    const read = deep.reserve(group);
    if (!read) return { verdict, isQueued, isUnread: true };
    return { verdict: await deep.run(read, () => verifyWithHistory(key, context)), isQueued, read };
  };
  const objectsBefore = part?.cursor.totals?.objects ?? 0;
  const walk: Walk<Found, Totals> = {
    name: dryRun ? "scrub dry" : "scrub",
    options,
    kinds: [...quickKinds(context.config), "repairs"],
    objectsAtATime: part?.looks ?? OBJECTS_AT_A_TIME,
    async act(_key, group) {
      options.onGroup?.(group!);
      const found = await look(group!);
      const { verdict, isQueued } = found;
      return verdict.removed && !isQueued && !hasKeptDamage(verdict) ? undefined : found;
    },
    add(totals, found) {
      span.add(found);
      return addFound(totals, found);
    },
    settle: (totals, isEnd) => span.settle(totals, isEnd),
    ...(part && {
      cursor: part.cursor,
      until: part.until,
      isEnough: ({ objects }) => objects - objectsBefore >= part.objectsMax || span.size >= part.damagedMax,
    }),
  };
  return walkObjects(walk, NO_TOTALS, context);
}
