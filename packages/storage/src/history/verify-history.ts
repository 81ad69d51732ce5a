/**
 * Checks the versions that the history of a key keeps, beside the key itself: a chunk that is lost of them would be
 * missed on the day on which somebody restores one.
 */
import { LEAF_LIST, type Manifest } from "@agarose/core/format";
import { listChunks, storedChunks } from "../objects/chunk-listing.ts";
import { keepMsOf } from "../commit/history.ts";
import type { WriteContext } from "../commit/write-context.ts";
import { checkLeafLists } from "../leaf-lists/leaf-lists.ts";
import type { UnreachableRegion } from "../objects/verdicts.ts";
import {
  checkChunks,
  damageOf,
  damageOfLists,
  verifyObject,
  type ChunkDamage,
  type KeptVerdict,
  type ObjectVerdict,
} from "../objects/verify-object.ts";
import { keptVersions } from "./kept-versions.ts";

/** Findings about the history of a key. */
export interface HistoryVerdict {
  readonly kept: readonly KeptVerdict[];
  /** Regions that did not say what they keep. */
  readonly problems: readonly UnreachableRegion[];
}

/** `verifyObject`, and the same for the versions that are kept of the key. Throws only when the caller aborts. */
export async function verifyWithHistory(key: string, context: WriteContext, quick = false): Promise<ObjectVerdict> {
  const [verdict, history] = await Promise.all([verifyObject(key, context, quick), verifyHistory(key, context, quick)]);
  return withHistory(verdict, history);
}

/** Adds what was found of a history to the verdict on its key. */
export function withHistory(verdict: ObjectVerdict, { kept, problems }: HistoryVerdict): ObjectVerdict {
  const isSound = problems.length === 0 && kept.every(({ damage }) => damage.length === 0);
  return {
    ...verdict,
    sound: verdict.sound && isSound,
    ...(kept.length > 0 && { kept }),
    ...(problems.length > 0 && { historyProblems: problems }),
  };
}

/** The versions of a key whose time is not over. Of a key without `keep`, nothing is asked. */
export async function youngVersions(
  key: string,
  context: WriteContext,
): Promise<{ readonly manifests: readonly Manifest[]; readonly problems: readonly UnreachableRegion[] }> {
  if (keepMsOf(key, context.config) === 0) return { manifests: [], problems: [] };
  const { versions, problems } = await keptVersions(key, context.breaker.countResponsive(context.stores), context);
  context.signal.throwIfAborted();
  return {
    manifests: versions.filter(({ keptUntilMs }) => keptUntilMs > context.nowMs()).map(({ manifest }) => manifest),
    problems: problems.map(({ region, problem }) => ({ region, problem: problem.message })),
  };
}

/** The verdict on one kept version, given what is wrong with it. */
export function keptVerdict(manifest: Manifest, damage: readonly ChunkDamage[]): KeptVerdict {
  const { generation, version } = manifest;
  const chunks = storedChunks(manifest).length;
  const chunksSound = chunks - damage.filter(({ chunk }) => chunk !== LEAF_LIST).length;
  return { generation, version, chunks, chunksSound, damage };
}

async function verifyHistory(key: string, context: WriteContext, quick: boolean): Promise<HistoryVerdict> {
  const { manifests, problems } = await youngVersions(key, context);
  const kept: KeptVerdict[] = [];
  for (const manifest of manifests) {
    const chunks = quick
      ? damageOf(manifest, await listChunks(manifest, context))
      : await checkChunks(manifest, context);
    const lists = await checkLeafLists(manifest, quick, context);
    kept.push(keptVerdict(manifest, [...chunks, ...damageOfLists(lists)]));
  }
  return { kept, problems };
}
