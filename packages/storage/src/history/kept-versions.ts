/**
 * The versions of a key that its history keeps (docs/reference/format.md, "History"): the copies of replaced manifests
 * that a trusted publisher has signed.
 */
import { AgaroseError } from "@agarose/core";
import {
  isTombstone,
  LEAF_LIST,
  parseManifest,
  refuseTooLarge,
  type Manifest,
  type ManifestRecord,
} from "@agarose/core/format";
import { readChecked } from "@agarose/core/sources";
import type { Store } from "../buckets/store.ts";
import { mapOrdered, allOf } from "../listing/adaptive-pool.ts";
import { keyGroups, type KeyGroup } from "../listing/key-groups.ts";
import { storedChunks } from "../objects/chunk-listing.ts";
import { runTasks } from "../regions/ask-regions.ts";
import { askHistory, keepMsOf, type HistoryCopy } from "../commit/history.ts";
import { majorityOf, type WriteContext } from "../commit/write-context.ts";
import { nodeSha256 } from "../objects/sha256.ts";
import {
  checkManifests,
  damageIn,
  verifyObject,
  type ChunkDamage,
  type KeptVerdict,
  type ObjectVerdict,
  type UnreachableRegion,
} from "../objects/verify-object.ts";
import type { DeploymentParts } from "../parts.ts";

/** A version that another one, or a removal, has replaced. */
export interface KeptVersion {
  readonly manifest: Manifest;
  /**
   * When the last region may let go of it, in ms since 1970 by this machine's clock. Regions count by their own, from
   * which this one may differ by days.
   */
  readonly keptUntilMs: number;
}

/** The history of a key. */
export interface KeptVersions {
  /** The newest first. Of an upload with several copies, that of the highest generation. */
  readonly versions: readonly KeptVersion[];
  /** Copies and regions that could not be read, with the reason. */
  readonly problems: readonly { readonly region: string; readonly problem: AgaroseError }[];
}

/**
 * Reads the history of a key: one listing of each region, and one copy of each version. `enough` answers end the
 * patience. It rejects only when the caller aborts.
 */
export async function keptVersions(key: string, enough: number, context: WriteContext): Promise<KeptVersions> {
  const outcomes = await askHistory(key, enough, context);
  const problems = outcomes.flatMap(({ store, error }) =>
    error ? [{ region: store.region.name, problem: error }] : [],
  );
  const copies = Map.groupBy(
    outcomes.flatMap(({ value = [] }) => value),
    ({ upload }) => upload,
  );
  const versions = await Promise.all(
    [...copies.values()].map(async (own) => {
      const manifest = await readCopies(key, own, context, problems);
      return manifest && { manifest, keptUntilMs: untilMs(key, own, context) };
    }),
  );
  const found = versions.filter((version) => version !== undefined);
  return { versions: found.toSorted((a, b) => b.manifest.generation - a.manifest.generation), problems };
}

/**
 * The versions of a key whose time is not over, and what could not be read. Of a key without `keep`, nothing is asked.
 * It rejects only when the caller aborts.
 */
export async function youngVersions(
  key: string,
  enough: number,
  context: WriteContext,
): Promise<Pick<KeptVersions, "problems"> & { readonly manifests: readonly Manifest[] }> {
  if (keepMsOf(key, context.config) === 0) return { manifests: [], problems: [] };
  const { versions, problems } = await keptVersions(key, enough, context);
  context.signal.throwIfAborted();
  const young = versions.filter(({ keptUntilMs }) => keptUntilMs > context.nowMs());
  return { manifests: young.map(({ manifest }) => manifest), problems };
}

/**
 * Throws why a version may have been overlooked. A copy that was made is in a majority, so what fewer regions list and
 * nobody can use is a forgery, or damage of which another region has the sound copy.
 */
export function refuseUnread(
  { problems }: Pick<KeptVersions, "problems">,
  { stores }: Pick<WriteContext, "stores">,
): void {
  const unusable = problems.filter(({ problem: { code } }) => code.startsWith("MANIFEST_"));
  const other = problems.find((one) => !unusable.includes(one));
  if (other) throw other.problem;
  if (new Set(unusable.map(({ region }) => region)).size >= majorityOf(stores)) throw unusable[0]!.problem;
}

/** The manifest of the first copy that can be used, of those of the last replacement first. */
async function readCopies(
  key: string,
  copies: readonly HistoryCopy[],
  context: WriteContext,
  problems: { readonly region: string; readonly problem: AgaroseError }[],
): Promise<Manifest | undefined> {
  const failed: typeof problems = [];
  for (const copy of copies.toSorted((a, b) => replacedBy(b) - replacedBy(a))) {
    const { store } = copy;
    const run = (signal: AbortSignal): Promise<Manifest> => readCopy(key, copy, { ...context, signal });
    const [outcome] = await runTasks([{ store, run }], { enough: 1 }, context);
    if (outcome?.value) return outcome.value;
    failed.push({ region: store.region.name, problem: outcome!.error! });
  }
  problems.push(...failed);
  return undefined;
}

async function readCopy(key: string, { store, name, upload }: HistoryCopy, context: WriteContext): Promise<Manifest> {
  const { trust, signal } = context;
  const response = await store.get(name, { signal });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw damaged(key, store, `was answered by ${response.status}`);
  }
  const record = await parseManifest(await readChecked(response, refuseTooLarge), { key, trust, sha256: nodeSha256 });
  // The name decides which chunks stay, so a manifest under another name is not the one that was kept.
  if (isTombstone(record) || record.upload !== upload) throw damaged(key, store, "holds another version");
  return record;
}

function damaged(key: string, { region: { name } }: Store, what: string): AgaroseError {
  const message = `a copy of the history of ${JSON.stringify(key)} in ${name} ${what}`;
  return new AgaroseError("SOURCE_FAILED", message, { key, region: name });
}

function untilMs(key: string, copies: readonly HistoryCopy[], { config }: WriteContext): number {
  const storedMs = copies.map(({ store, modifiedMs }) => modifiedMs - (store.clockAheadMs ?? 0));
  return Math.max(...storedMs) + keepMsOf(key, config);
}

/** The generation that replaced the copy: the end of its name. */
function replacedBy({ name }: HistoryCopy): number {
  return Number(name.slice(name.lastIndexOf(".") + 1));
}

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

const OBJECTS_AT_A_TIME = 16;

/**
 * Keys below `prefix` of which `isLeft` says so: for the newest record, or for a version whose time is not over.
 *
 * @throws what a region answers that cannot be listed or read: only there may an object be.
 */
export async function objectsLeft(
  prefix: string,
  isLeft: (record: ManifestRecord) => boolean,
  context: DeploymentParts,
): Promise<string[]> {
  const { stores, signal } = context;
  const listed = keyGroups(stores, prefix, signal, { kinds: ["manifests"] });
  const look = async ({ key }: KeyGroup): Promise<string[]> => {
    const { newest } = await checkManifests(key, context);
    if (newest && isLeft(newest)) return [key];
    const kept = await youngVersions(key, stores.length, context);
    refuseUnread(kept, context);
    return kept.manifests.some(isLeft) ? [key] : [];
  };
  return (await allOf(mapOrdered(listed, OBJECTS_AT_A_TIME, look))).flat().toSorted();
}
