/**
 * Removes one object: commits a tombstone, then deletes the chunks that the replaced manifests named, and no others, so
 * that a put under way keeps its own. Of a key under `keep` they stay.
 */
import {
  chunkNameOf,
  chunkRegions,
  encodeManifest,
  isTombstone,
  LEAF_LIST,
  parseKey,
  sealTombstone,
  type Manifest,
  type ManifestRecord,
  type Tombstone,
} from "@agarose/core/format";
import { regionsOf, withCurrentNames } from "../buckets/region-names.ts";
import type { Store } from "../buckets/store.ts";
import { askRegions } from "../regions/ask-regions.ts";
import type { BatchClaim } from "../commit/batches.ts";
import { commitRecord, completeRecord, type Commit, type RegionProblem } from "../commit/commit.ts";
import { keepMsOf } from "../commit/history.ts";
import { holds, surveyRegions, type Survey } from "../regions/region-survey.ts";
import { settledSurvey } from "../regions/settled.ts";
import { enqueueRepair } from "../commit/repair-queue.ts";
import { majorityOf, type WriteContext } from "../commit/write-context.ts";
import { checkManifests } from "./verify-object.ts";

/** The outcome of `removeObject`. */
export interface RemoveResult {
  readonly key: string;
  /** Of the tombstone. */
  readonly generation: number;
  readonly chunksRemoved: number;
  /** Regions without the tombstone: a minority. `agarose repair` writes it there. */
  readonly regionsWithoutTombstone: readonly RegionProblem[];
  /** Chunks that could not be removed. */
  readonly leftovers: readonly { readonly region: string; readonly name: string; readonly problem: string }[];
}

/** Whether `removeObject` would leave a tombstone that is not there. It throws as `checkManifests` does. */
export async function isRemovable(key: string, context: WriteContext): Promise<boolean> {
  const { newest, verdicts } = await checkManifests(key, context);
  const isGone = newest !== undefined && isTombstone(newest) && verdicts.every(({ state }) => state === "sound");
  if (newest === undefined && context.config.origin) return true;
  return !isGone && verdicts.some(({ state }) => state !== "missing" && state !== "unreachable");
}

/** How an object is removed. */
export interface RemoveHow {
  /** Throws unless the newest record is what the caller wants to remove. What another writer commits then stays. */
  readonly onlyIf?: (newest: ManifestRecord | undefined) => void;
  /** The caller's view of the key, the newest of it in a majority. Default: it looks. */
  readonly survey?: Survey | undefined;
  /** A batch's claim to its key, without a condition. Default: it looks at the key, and claims a generation of it. */
  readonly claim?: BatchClaim | undefined;
}

/**
 * Removes an object; undefined when no region holds anything of it, and no origin may. Chunks of older versions are
 * left to `agarose gc`.
 *
 * @throws KEY_INVALID, KEY_TOO_LONG, NO_QUORUM, STORE_FAILED, REPLACED_MEANWHILE, WRITE_UNCERTAIN,
 *   CREDENTIALS_REFUSED or ABORTED.
 */
export async function removeObject(
  key: string,
  context: WriteContext,
  { onlyIf, survey: seen = undefined, claim }: RemoveHow = {},
): Promise<RemoveResult | undefined> {
  parseKey(key);
  const survey = seen ?? claim?.survey ?? (await (onlyIf ? settledSurvey : surveyRegions)(key, context));
  onlyIf?.(survey.newest);
  const commit = await commitTombstone(key, survey, context, onlyIf !== undefined, claim);
  if (!commit) return undefined;
  const { record, replaced, regionsWithout } = commit;
  const manifests = [...survey.regions, ...replaced].flatMap(({ record: named }) =>
    named && !isTombstone(named) ? [named] : [],
  );
  // Under `keep` they stay readable by the copies that the commit has stored.
  const isKept = keepMsOf(key, context.config) > 0;
  const removal = isKept ? { chunksRemoved: 0, leftovers: [] } : await removeChunks(manifests, context);
  const { generation } = record;
  const regions = regionsWithout.map(({ region }) => region);
  await enqueueRepair({ key, generation, missing: [], regions }, context);
  return { key, generation, ...removal, regionsWithoutTombstone: regionsWithout };
}

async function commitTombstone(
  key: string,
  survey: Survey,
  context: WriteContext,
  copies: boolean,
  claim: BatchClaim | undefined,
): Promise<Commit<Tombstone> | undefined> {
  const { regions, newest } = survey;
  const isUnknown = regions.every(({ state }) => state === "absent" || state === "unreachable");
  // The origin may have it, and must not bring it back.
  if (isUnknown && !context.config.origin) return undefined;
  if (newest && isTombstone(newest)) {
    const bytes = encodeManifest(newest);
    if (regions.every((region) => region.state === "unreachable" || holds(region, bytes))) return undefined;
    const completed = await completeRecord(newest, survey, context);
    if (completed) return completed;
  }
  const seal = (generation: number, modified: string): Promise<Tombstone> =>
    sealTombstone({ key, generation, modified }, context.sign);
  const lease = await claim?.take();
  return commitRecord({ key, upload: lease?.upload ?? context.newUpload(), survey, copies, lease, seal }, context);
}

async function removeChunks(
  manifests: readonly Manifest[],
  context: WriteContext,
): Promise<Pick<RemoveResult, "chunksRemoved" | "leftovers">> {
  const names = new Map<string, Set<string>>();
  const regions = regionsOf(context.stores);
  for (const manifest of manifests) {
    const named = withCurrentNames(manifest, regions);
    if (named.bytes === 0) continue;
    const leaves = (named.leaves ?? []).map((region) => [LEAF_LIST, region] as const);
    for (const [chunk, region] of [...chunkRegions(named).entries(), ...leaves]) {
      names.set(region, (names.get(region) ?? new Set()).add(chunkNameOf(named, chunk)));
    }
  }
  const stores = context.stores.filter(({ region }) => names.has(region.name));
  const remove = (store: Store, signal: AbortSignal) => store.remove([...names.get(store.region.name)!], signal);
  const outcomes = await askRegions(stores, remove, { enough: majorityOf(context.stores) }, context);
  const problems = new Map(outcomes.map(({ store, error }) => [store.region.name, error?.message]));
  const leftovers = outcomes.flatMap(({ store, value = [] }) =>
    value.map((failure) => ({ region: store.region.name, ...failure })),
  );
  for (const [region, chunks] of names) {
    const problem = problems.has(region) ? problems.get(region) : "the region is not configured";
    if (problem !== undefined) leftovers.push(...[...chunks].map((name) => ({ region, name, problem })));
  }
  const all = [...names.values()].reduce((sum, { size }) => sum + size, 0);
  return { chunksRemoved: all - leftovers.length, leftovers };
}
