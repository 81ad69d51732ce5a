/**
 * The possible users of a key's uploads: writers, manifests and the history, looked at in this order. A writer's
 * claim goes only once its manifest is there, and a manifest of a kept version only once its copy is there.
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { claimedUploads, type ListedClaim } from "../../commit/claim.ts";
import { keepMsOf, listHistory, uploadOf, type HistoryCopy } from "../../commit/history.ts";
import { CLEANING_MS_MAX } from "../../commit/lease.ts";
import { surveyAll, type RegionManifest } from "../../regions/region-survey.ts";
import type { KeyGroup } from "../../listing/key-groups.ts";
import type { WriteContext } from "../../commit/write-context.ts";
import type { AgeOf } from "../../listing/region-clocks.ts";
import type { GarbageSearch } from "./search.ts";

/** The facts of a key. */
export interface KeyView {
  readonly group: KeyGroup;
  /** The object of each region under the name of the manifest. */
  readonly regions: readonly RegionManifest[];
  readonly writers: Writers;
  readonly history: History;
}

/** A search that is under way. Without `ageOf` nothing is marked or deleted. */
export type ViewContext = GarbageSearch & WriteContext & { readonly ageOf: AgeOf | undefined };

/** Puts that may still run. */
export interface Writers {
  readonly uploads: ReadonlySet<string>;
  /** By the timer: until then, no other writer of chunks that were listed before can have come. */
  readonly untilMs: number;
}

/** The history of a key. */
export interface History {
  /** Uploads of copies that have to stay. */
  readonly uploads: ReadonlySet<string>;
  /** Copies that every region has had for long enough. */
  readonly expired: readonly HistoryCopy[];
}

/** Looks at a key; returns the reason when a region cannot say what it names. */
export async function viewKey(group: KeyGroup, context: ViewContext): Promise<KeyView | AgaroseError> {
  const { key } = group;
  try {
    const writers = await writersOf(group, context);
    const regions = await surveyAll(key, context, context.stores.length);
    const unknown = regions.find(({ state }) => state === "unreachable" || state === "invalid");
    if (unknown) {
      const region = unknown.store.region.name;
      return new AgaroseError("SOURCE_FAILED", `${region}: ${unknown.problem?.message}`, { key, region });
    }
    return { group, regions, writers, history: splitHistory(key, await historyOf(group, context), context) };
  } catch (error) {
    context.signal.throwIfAborted();
    return toAgaroseError(error);
  }
}

async function writersOf({ key, marks }: KeyGroup, context: ViewContext): Promise<Writers> {
  const { clock, ageOf } = context;
  const untilMs = clock.now() + CLEANING_MS_MAX;
  // Without a mark nothing is deleted.
  if (!ageOf || marks.length === 0) return { uploads: new Set(), untilMs };
  const isDead = (claim: ListedClaim, deadMs: number): boolean => ageOf(claim) >= deadMs;
  return { uploads: await claimedUploads(key, isDead, context), untilMs };
}

/** The copies of a key: those of this moment, or where no rule keeps more of them, those of the walk. */
async function historyOf({ key, history }: KeyGroup, context: ViewContext): Promise<readonly HistoryCopy[]> {
  if (keepMsOf(key, context.config) > 0) return listHistory(key, context.stores.length, context);
  return history.map((copy) => ({ ...copy, upload: uploadOf(copy.suffix) }));
}

/** A copy stays in all regions while it is young in one, so that no single one can end it. */
function splitHistory(
  key: string,
  history: readonly HistoryCopy[],
  { config, nowMs, ageOf = ({ modifiedMs }) => nowMs() - modifiedMs }: ViewContext,
): History {
  const keepMs = keepMsOf(key, config);
  const young = history.filter((copy) => ageOf(copy) < keepMs);
  const names = new Set(young.map(({ name }) => name));
  return {
    uploads: new Set(young.map(({ upload }) => upload)),
    expired: history.filter(({ name }) => !names.has(name)),
  };
}
