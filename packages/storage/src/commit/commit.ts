/**
 * Commits a manifest or tombstone: claims a generation, writes it to the regions, and counts a majority.
 *
 * Before a majority has it, readers may see either version. After it, every later writer sees it.
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import {
  encodeManifest,
  isTombstone,
  parseManifest,
  sealManifest,
  sealTombstone,
  type ManifestRecord,
} from "@agarose/core/format";
import { regionsOf, withCurrentNames } from "../buckets/region-names.ts";
import { nodeSha256 } from "../objects/sha256.ts";
import { BatchLease, type Ownership } from "./batches.ts";
import { claimGeneration, isCopied, isPassed } from "./claim.ts";
import { AWAKENING_MS } from "./lease.ts";
import { PROBE, probe } from "./probe.ts";
import { rollBack, writeRecord, type RegionWrite } from "./manifest-write.ts";
import { holds, surveyAgain, surveyRegions, type RegionManifest, type Survey } from "../regions/region-survey.ts";
import { majorityOf, sleep, type WriteContext } from "./write-context.ts";

/** A region without the record, and why. */
export interface RegionProblem {
  readonly region: string;
  readonly problem: string;
}

/** The manifest to commit. */
export interface CommitInput<T extends ManifestRecord> {
  readonly key: string;
  /** Marks claims as this writer's. */
  readonly upload: string;
  /** The objects of the regions when the caller decided to write. */
  readonly survey: Survey;
  /**
   * Whether the record depends on the newest one of `survey`: it repeats it, or replaces no other. It is then committed
   * only if no other writer came between.
   */
  readonly copies?: boolean;
  /** The right to a generation that a batch has claimed, of `survey`. Default: it is claimed. */
  readonly lease?: BatchLease | undefined;
  /** Whether the record brings new content, which has to be encrypted where a rule says so. */
  readonly isContent?: boolean;
  /** Work between the claim and the write, such as the upload of chunks. */
  readonly prepare?: () => Promise<void>;
  /** Makes the record of `generation`, with a time after `modifiedMsMin`. */
  readonly seal: (generation: number, modified: string) => Promise<T>;
}

/** The committed manifest. */
export interface Commit<T extends ManifestRecord> {
  readonly record: T;
  /** The previous objects of the regions that accepted it. */
  readonly replaced: readonly RegionManifest[];
  /** The regions that did not take it: a minority. */
  readonly regionsWithout: readonly RegionProblem[];
}

/**
 * Commits the record that `seal` makes.
 *
 * @throws NO_QUORUM, REPLACED_MEANWHILE, STORE_FAILED (undone, readers see the version before), WRITE_UNCERTAIN
 *   (readers may see either version), CONFIG_INVALID or MANIFEST_INVALID (no reader could use the record, and nothing
 *   was written), KEYS_OUTDATED, REGION_MISPLACED, CREDENTIALS_REFUSED, ABORTED, or what `prepare` throws.
 */
export async function commitRecord<T extends ManifestRecord>(
  input: CommitInput<T>,
  context: WriteContext,
): Promise<Commit<T>> {
  const { key, upload, copies = false } = input;
  context.fence?.prepare();
  await checkSigner(context);
  const newest = input.survey.generation;
  const leases: Ownership[] = [input.lease ?? (await claimGeneration({ key, upload, newest, copies }, context))];
  try {
    const sealed = await prepared(input, leases, context);
    // From here on the commit ends or is undone: an interruption waits for it.
    const ending = { ...context, signal: new AbortController().signal };
    const { lease } = input;
    if (lease?.generation === sealed.record.generation) lease.isOpen = true;
    const writes = await writeRecord(sealed.record, sealed.survey.regions, ending, copies ? newest : undefined);
    const written = writes.filter(({ outcome }) => outcome === "written");
    if (written.length < majorityOf(context.stores)) throw await giveUp(sealed.record, writes, ending);
    // A rotation may have taken the key out of force while a slow region held the writes up.
    await context.fence?.check(sealed.record, input.isContent).catch((error: unknown) => {
      throw notAcknowledged(key, error);
    });
    // Its own alone: by a claim, the garbage collector knows the upload of a writer that still works.
    const own = leases.filter((one) => one !== lease).map(({ generation }) => generation);
    await context.claimRemovals.add(key, own);
    if (lease) lease.isOpen = false;
    return commitOf(sealed.record, writes);
  } finally {
    for (const lease of leases) lease.end();
  }
}

/** The checks before the first write of a manifest. A failure withdraws the claims, so that they block no writer. */
async function prepared<T extends ManifestRecord>(input: CommitInput<T>, leases: Ownership[], context: WriteContext) {
  try {
    await input.prepare?.();
    return await sealOwn(input, leases, context);
  } catch (error) {
    await Promise.all(leases.map((lease) => lease.withdraw()));
    throw error;
  }
}

function commitOf<T extends ManifestRecord>(record: T, writes: readonly RegionWrite[]): Commit<T> {
  const written = writes.filter(({ outcome }) => outcome === "written");
  const others = writes.filter(({ outcome }) => outcome !== "written");
  return {
    record,
    replaced: written.flatMap(({ replaced }) => replaced ?? []),
    regionsWithout: others.map(({ store, problem }) => ({
      region: store.region.name,
      problem: problem?.message ?? "has a newer version",
    })),
  };
}

/**
 * Writes a record that a majority has to the regions of `survey` that lack it. Undefined where no majority has it: its
 * writer may be undoing it at this moment.
 *
 * @throws REPLACED_MEANWHILE, or what the fence throws.
 */
export async function completeRecord<T extends ManifestRecord>(
  record: T,
  { regions }: Survey,
  context: WriteContext,
): Promise<(Commit<T> & { readonly isWritten: boolean }) | undefined> {
  const bytes = encodeManifest(record);
  const silent = regions.filter(({ state }) => state === "unreachable");
  const lacking = regions.filter((region) => region.state !== "unreachable" && !holds(region, bytes));
  if (regions.length - silent.length - lacking.length < majorityOf(regions)) return undefined;
  if (lacking.length > 0) await context.fence?.check();
  const writes = await writeRecord(record, lacking, context);
  if (writes.some(({ outcome }) => outcome === "superseded")) throw replacedMeanwhile(record.key);
  const failed = [...silent, ...writes.filter(({ outcome }) => outcome === "failed")];
  return {
    record,
    replaced: writes.flatMap(({ replaced }) => replaced ?? []),
    regionsWithout: failed.map(({ store, problem }) => ({
      region: store.region.name,
      problem: problem?.message ?? "did not answer",
    })),
    isWritten: writes.some(({ outcome }) => outcome === "written"),
  };
}

/**
 * Seals the record under a generation that is ours at this moment, and that no region has passed. Adds to `leases` what
 * it has to claim for that.
 */
async function sealOwn<T extends ManifestRecord>(
  input: CommitInput<T>,
  leases: Ownership[],
  context: WriteContext,
): Promise<{ record: T; survey: Survey }> {
  const { key, upload, copies = false, survey: before, prepare, seal } = input;
  const isOwned = async (own: Ownership): Promise<boolean> =>
    own.isFresh ||
    (copies && !own.isExpired && (await own.refresh()) && !(await isPassed(key, own.generation, upload, context)));
  for (;;) {
    const own = leases.at(-1)!;
    const isOurs = await isOwned(own);
    // Claims are removed once their generation is in a majority. A late claimer sees that generation here.
    // A majority shows it. What the others hold was seen before, and their conditions are those of that time.
    // The writer that claimed a batch has looked since.
    const isSeen = own instanceof BatchLease && isOurs;
    const survey = copies
      ? await surveyRegions(key, context)
      : isSeen
        ? before
        : await surveyAgain(before, key, context);
    const newest = survey.generation;
    if (copies && newest !== before.generation) throw replacedMeanwhile(key);
    if (newest < own.generation && isOurs) {
      const record = await seal(own.generation, timeAfter(survey.newest, context.nowMs()));
      await readAsReader(record, context);
      await context.fence?.check(record, input.isContent);
      // A signer can be a program that asks a person.
      if (copies ? await isOwned(own) : !own.isExpired) return { record, survey };
    }
    if (copies) throw replacedMeanwhile(key);
    const { isExpired } = own;
    leases.push(await claimGeneration({ key, upload, newest: Math.max(newest, own.generation) }, context));
    if (isExpired && prepare) await sleep(AWAKENING_MS, context);
  }
}

const checked = new WeakMap<object, WeakSet<object>>();

/** Refuses to begin where readers would not trust what this writer signs: CONFIG_INVALID. */
async function checkSigner({ sign, readerTrust }: WriteContext): Promise<void> {
  const signers = checked.get(readerTrust) ?? new WeakSet<object>();
  checked.set(readerTrust, signers);
  const owner = sign ?? readerTrust;
  if (signers.has(owner)) return;
  const signature = sign && (await probe(sign));
  await readerTrust(PROBE, signature).catch((error: unknown) => {
    throw unreadable(error);
  });
  signers.add(owner);
}

/**
 * Parses the bytes that are about to be written as a reader would, so that no version goes for one that none can read.
 */
async function readAsReader(record: ManifestRecord, { readerTrust: trust }: WriteContext): Promise<void> {
  await parseManifest(encodeManifest(record), { key: record.key, trust, sha256: nodeSha256 }).catch(
    (error: unknown) => {
      throw unreadable(error);
    },
  );
}

function unreadable(error: unknown): AgaroseError {
  const cause = toAgaroseError(error);
  if (cause.code === "MANIFEST_UNTRUSTED") {
    const message =
      "what `signing` signs is not trusted by `publicKeys`, so no reader could use it and nothing was written: correct " +
      `one of the two. ${cause.message}`;
    return new AgaroseError("CONFIG_INVALID", message, { field: "signing" }, cause);
  }
  const message = `no reader could use the manifest, so it was not written. ${cause.message}`;
  return new AgaroseError(cause.code, message, cause.details, cause);
}

/**
 * Commits `record`, the newest of `survey`, again under its own generation, with the names that its regions have
 * now. Chunks stay where they are. It throws as `commitRecord` does, and REPLACED_MEANWHILE when another writer has or
 * had a claim to that generation.
 */
export function commitAgain<T extends ManifestRecord>(
  record: T,
  survey: Survey,
  context: WriteContext,
): Promise<Commit<T>> {
  const { key } = record;
  const seal = (generation: number, modified: string): Promise<T> =>
    resealed(record, generation, modified, context) as Promise<T>;
  return commitRecord({ key, upload: context.newUpload(), survey, copies: true, seal }, context);
}

/** `commitAgain`; undefined when another writer came between. */
export async function commitAgainIfNewest<T extends ManifestRecord>(
  record: T,
  survey: Survey,
  context: WriteContext,
): Promise<Commit<T> | undefined> {
  try {
    return await commitAgain(record, survey, context);
  } catch (error) {
    if (toAgaroseError(error).code === "REPLACED_MEANWHILE") return undefined;
    throw error;
  }
}

/** `record` under another generation, with the names that its regions have now, and its own signature. */
export function resealed(
  record: ManifestRecord,
  generation: number,
  modified: string,
  { sign, stores }: WriteContext,
): Promise<ManifestRecord> {
  if (isTombstone(record)) return sealTombstone({ key: record.key, generation, modified }, sign);
  const named = withCurrentNames(record, regionsOf(stores));
  const { hashesRoot: _root, hashesSha256: _sha256, version: _version, signature: _signature, ...content } = named;
  return sealManifest({ ...content, generation, modified }, nodeSha256, sign);
}

/** Whether this writer may write another manifest of the object: it cannot sign for the publisher without the key. */
export function maySeal(record: ManifestRecord, { sign }: WriteContext): boolean {
  return record.signature === undefined || sign !== undefined;
}

function notAcknowledged(key: string, error: unknown): AgaroseError {
  const cause = toAgaroseError(error);
  const message =
    `the manifest of ${JSON.stringify(key)} was written, but its key may no longer be in force, so readers may ` +
    `see either version: run the command again. First error: ${cause.message}`;
  return new AgaroseError("WRITE_UNCERTAIN", message, { key, first: cause.toJSON() }, cause);
}

/** The time of a record after `newest`: now, but at least a millisecond later. Times never run backwards for a key. */
function timeAfter(newest: ManifestRecord | undefined, nowMs: number): string {
  return new Date(newest ? Math.max(nowMs, Date.parse(newest.modified) + 1) : nowMs).toISOString();
}

/** Undoes a record that too few regions took, and returns what to report. */
async function giveUp(
  record: ManifestRecord,
  writes: readonly RegionWrite[],
  context: WriteContext,
): Promise<AgaroseError> {
  const { key } = record;
  const needed = majorityOf(context.stores);
  const count = (wanted: RegionWrite["outcome"]): number => writes.filter(({ outcome }) => outcome === wanted).length;
  const written = count("written");
  const silent = writes.filter(({ mayArrive }) => mayArrive);
  const first = writes.find(({ problem }) => problem)?.problem;
  const details = { key, written, needed, first: first?.toJSON() };
  const what = `the manifest of ${JSON.stringify(key)} was written to ${written} regions, ${needed} are needed`;
  // Other writers rely on a manifest that a majority may hold. Undoing it could revert writes that they acknowledged.
  const isOpen = written + silent.length >= needed;
  const uncertain = (isOpen ? silent.map(({ store }) => store) : await rollBack(record, writes, context)).map(
    ({ region }) => region.name,
  );
  const isKept = uncertain.length > 0 || (await isRepeated(record, context));
  if (!isKept && count("superseded") > 0) return replacedMeanwhile(key, details);
  if (!isKept) {
    const message = `${what}, so it was undone and readers see the version before: put it again once they answer. `;
    return new AgaroseError("STORE_FAILED", `${message}First error: ${first?.message}`, details, first);
  }
  const why =
    uncertain.length > 0 ? `${uncertain.join(", ")} did not say whether they took it` : "a repair had found it before";
  return new AgaroseError(
    "WRITE_UNCERTAIN",
    `${what}, and ${why}, so readers may see either version: run the command again once all regions answer. ` +
      `First error: ${first?.message}`,
    { ...details, regions: uncertain },
    first,
  );
}

/** Whether another writer has repeated `record` under a newer generation, or may be about to. */
async function isRepeated(record: ManifestRecord, context: WriteContext): Promise<boolean> {
  try {
    // The claim of a copy goes only once the copy is in a majority, so the claims come first.
    if (await isCopied(record.key, record.generation, context)) return true;
    const { regions } = await surveyRegions(record.key, context);
    // The copy may be older than the newest by now, and still be in a region that the newest has not reached.
    return regions.some(({ record: other }) => {
      return other !== undefined && other.generation > record.generation && isCopy(other, record);
    });
  } catch {
    return true;
  }
}

function isCopy(a: ManifestRecord, b: ManifestRecord): boolean {
  return isTombstone(a) || isTombstone(b) ? isTombstone(a) && isTombstone(b) : a.upload === b.upload;
}

/** Another writer came between; `next` says what to do about it. */
export function replacedMeanwhile(
  key: string,
  details: Record<string, unknown> = {},
  next = "run the command again if it must win",
): AgaroseError {
  const message = `a different writer replaced ${JSON.stringify(key)} at the same time: ${next}`;
  return new AgaroseError("REPLACED_MEANWHILE", message, { key, ...details });
}
