/**
 * Checks the versions that the history of a key keeps, beside the key itself: a chunk that is lost of them would be
 * missed on the day on which somebody restores one.
 */
import { LEAF_LIST, type Manifest } from "@agarose/core/format";
import { storedChunks } from "../objects/chunk-listing.ts";
import type { WriteContext } from "../commit/write-context.ts";
import {
  verifyObject,
  type ChunkDamage,
  type KeptVerdict,
  type ObjectVerdict,
  type UnreachableRegion,
  damageIn,
} from "../objects/verify-object.ts";
import { youngVersions, type KeptVersions } from "./kept-versions.ts";

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

/** The regions of problems, and what they said. */
export function problemsOf(problems: KeptVersions["problems"]): UnreachableRegion[] {
  return problems.map(({ region, problem }) => ({ region, problem: problem.message }));
}

/** The verdict on one kept version, given what is wrong with it. */
export function keptVerdict(manifest: Manifest, damage: readonly ChunkDamage[]): KeptVerdict {
  const { generation, version } = manifest;
  const chunks = storedChunks(manifest).length;
  const chunksSound = chunks - damage.filter(({ chunk }) => chunk !== LEAF_LIST).length;
  return { generation, version, chunks, chunksSound, damage };
}

async function verifyHistory(key: string, context: WriteContext, quick: boolean): Promise<HistoryVerdict> {
  const { manifests, problems } = await youngVersions(key, context.breaker.countResponsive(context.stores), context);
  const kept: KeptVerdict[] = [];
  for (const manifest of manifests) {
    kept.push(keptVerdict(manifest, await damageIn(manifest, quick, context)));
  }
  return { kept, problems: problemsOf(problems) };
}
