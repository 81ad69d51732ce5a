/** From a folder to objects: makes the keys below a prefix equal to the files of a folder. */
import type { Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { isTombstone, type Manifest, type ManifestRecord } from "@agarose/core/format";
import type { BatchClaim } from "../commit/batches.ts";
import { replacedMeanwhile } from "../commit/commit.ts";
import { enqueueRepair } from "../commit/repair-queue.ts";
import { majorityOf } from "../commit/write-context.ts";
import { isRemoved, KeyListing } from "../listing/keys.ts";
import { isAsConfigured, shownManifest } from "../encryption/secrets-of.ts";
import { readRecord } from "../objects/manifests.ts";
import type { PutResult } from "../objects/put-object.ts";
import { removeObject } from "../objects/remove-object.ts";
import { putOverOrigin, removeOverOrigin } from "../origin/read-through.ts";
import { fileSource, sha256Of } from "../upload/file-source.ts";
import { contentTypeOf, headersOf, isDescribedAs } from "../upload/header-rules.ts";
import type { Described } from "../upload/object-headers.ts";
import { storeFiles, type KnownKey, type StoreOutcome } from "../upload/transfers.ts";
import { checkManifests } from "../objects/verify-object.ts";
import type { KeyGroup } from "../listing/key-groups.ts";
import {
  commonEtag,
  currentManifest,
  etagOfAll,
  majorityEtag,
  majorityRecord,
  md5In,
} from "../listing/listed-object.ts";
import { mapOrdered } from "../listing/adaptive-pool.ts";
import { readAbsences, type Absences } from "./absences.ts";
import { areKnown, knownOf, signatureOf, type Known } from "./known-equal.ts";
import { LocalFolder, pairsOf, unreadable, withKnown, type LocalFile, type Pair } from "./local-folder.ts";
import type { SyncContext, SyncJob, SyncTotals } from "./sync-job.ts";
import { withBatches } from "../upload/batches-of-keys.ts";

interface Difference {
  /** Files without an object, or with another one. */
  readonly changed: readonly LocalFile[];
  /** Objects without a file. */
  readonly extra: readonly KeyGroup[];
  /** How many objects have a file, equal or not. */
  readonly matched: number;
  /** Keys of `changed` that some region lists, and their ETags where all regions list one. */
  readonly listed: ReadonlyMap<string, string | undefined>;
  /** Whether the other keys of `changed` have no object for certain. */
  readonly isAbsenceKnown: boolean;
  readonly isComplete: boolean;
  readonly unchanged: number;
  readonly kept: number;
}

const PAGE = "text/html";
const COMPARED_AT_A_TIME = 32;
const REMOVED_AT_A_TIME = 8;
/** How often a file that changes while it is read is stored. */
const TRIES = 3;

/** Stores what is new or has changed, then removes what is gone. A file that fails does not stop the others. */
export async function push(job: SyncJob, context: SyncContext): Promise<SyncTotals> {
  const folder = new LocalFolder(job, context);
  const difference = await compare(job, folder, context);
  const { changed, extra, isComplete } = difference;
  const absences = job.deleteAfter > 0 ? await readAbsences(job.prefix, context) : undefined;
  const isDue = (group: KeyGroup): boolean => absences?.isDue(group, job.deleteAfter) ?? true;
  const due = extra.filter(isDue);
  if (job.delete && !job.dryRun && isComplete && due.length > 0 && folder.count > 0) {
    // Of what is there, nothing has a file: the folder is another one, most likely.
    await context.confirm({ names: due.map(({ key }) => key), isTotal: difference.matched === 0 });
  }
  const isPage = ({ key }: LocalFile): boolean => contentTypeOf(key) === PAGE;
  const stored: StoreOutcome[] = [];
  // Pages name the other files, so they come after them.
  for (const files of [changed.filter((file) => !isPage(file)), changed.filter(isPage)]) {
    stored.push(...(await storeAll(job, files, difference, context)));
  }
  const numberOf = (outcome: StoreOutcome["outcome"]): number => stored.filter((one) => one.outcome === outcome).length;
  const result = {
    unchanged: difference.unchanged + numberOf("unchanged"),
    kept: difference.kept + numberOf("kept"),
  };
  if (!job.delete || (extra.length === 0 && !absences)) return result;
  if (!isComplete) return { ...result, notRemoved: "too few regions could be listed" };
  if (context.failures() > 0) return { ...result, notRemoved: `${context.failures()} of the files failed` };
  if (folder.count === 0 && extra.length > 0) {
    const message =
      `${job.folder} has no file for this sync, and \`delete\` would remove all ${extra.length} objects: check the ` +
      "folder, or remove the objects by themselves if that is meant";
    throw new AgaroseError("USAGE", message, { objects: extra.length });
  }
  if (absences && !job.dryRun && !(await noteAbsent(job, extra, absences, due.length > 0))) {
    return { ...result, notRemoved: "another sync of the prefix ran at the same time, or too few regions answered" };
  }
  // By the records that are still as they were read: where another sync came between, it may have the file.
  const removed = due.filter(isDue);
  await removeAll(job, removed, context);
  return { ...result, ...(absences && { waiting: extra.length - removed.length }) };
}

/** Notes the keys without a file. Keys that `include` and `exclude` omit stay as another sync has noted them. */
function noteAbsent(
  { filter, prefix }: SyncJob,
  extra: readonly KeyGroup[],
  absences: Absences,
  isClaimed: boolean,
): Promise<boolean> {
  const keys = extra.map(({ key }) => key);
  return absences.note(keys, (key) => !filter.takes(key.slice(prefix.length)), isClaimed);
}

/** One ordered walk of the folder beside one ordered listing. Files that are already equal take no memory. */
async function compare(job: SyncJob, folder: LocalFolder, context: SyncContext): Promise<Difference> {
  const { prefix, filter } = job;
  const listing = new KeyListing(prefix, context);
  const changed: LocalFile[] = [];
  const listed = new Map<string, string | undefined>();
  const found: KeyGroup[] = [];
  let equal = 0;
  let kept = 0;
  let matched = 0;
  const pairs = withKnown(pairsOf(folder.files(), listing.groups()), context.known);
  const judged = mapOrdered(pairs, COMPARED_AT_A_TIME, async ({ item, known }) => {
    try {
      return {
        ...item,
        ...(await judge(item, known, listing, job, context)),
      };
    } catch (error) {
      context.signal.throwIfAborted();
      await context.report({ key: item.key, outcome: "failed", error: toAgaroseError(error) });
      return { ...item, verdict: "failed" as const, known: undefined, isKept: false };
    }
  });
  for await (const { key, file, group, verdict, known, isKept } of judged) {
    if (known) await context.known.keep(key, known);
    if (file && group) matched++;
    if (verdict === "equal" && isKept) kept++;
    else if (verdict === "equal") equal++;
    if (verdict === "extra" && filter.takes(key.slice(prefix.length))) found.push(group!);
    if (verdict !== "changed") continue;
    changed.push(file!);
    // Those of removed objects too: their generations count.
    if (group) listed.set(key, etagOfAll(group, context));
  }
  listing.warn(context.onWarning);
  const isLeft = ({ key }: KeyGroup): boolean =>
    folder.skipped.some((path) => key === path || key.startsWith(`${path}/`));
  return {
    changed,
    extra: found.filter((group) => !isLeft(group)),
    matched: matched + found.filter(isLeft).length,
    listed,
    isAbsenceKnown: context.stores.length - listing.regionsFailed.length >= majorityOf(context.stores),
    isComplete: listing.complete,
    unchanged: equal,
    kept,
  };
}

/** The action for a pair. Undefined: none. */
type Verdict = "equal" | "changed" | "extra" | undefined;

interface Judged {
  readonly verdict: Verdict;
  readonly known?: Known | undefined;
  /** Of an equal pair: whether some region did not say that it has the object. It is in the repair queue then. */
  readonly isKept?: boolean;
}

async function judge(
  { file, group }: Pair,
  known: Known | undefined,
  listing: KeyListing,
  job: SyncJob,
  context: SyncContext,
): Promise<Judged> {
  if (!group) return { verdict: "changed" };
  if (await isRemoved(group, context)) return { verdict: file && "changed" };
  // No file can have the key of a folder, so a client of S3 has made it, and knows when it goes.
  if (!file) return { verdict: group.key.endsWith("/") ? undefined : "extra" };
  const same = await equality(file, group, known, listing, job, context);
  if (!same) return { verdict: "changed" };
  const { silent } = same;
  const { generation } = same;
  if (!job.dryRun) await enqueueRepair({ key: group.key, generation, missing: [], regions: silent }, context);
  return { verdict: "equal", known: same.known, isKept: silent.length > 0 };
}

interface Equality {
  /** The note for the next run. */
  readonly known: Known | undefined;
  readonly generation: number;
  /** Regions that did not say that they have the object: a minority. */
  readonly silent: readonly string[];
}

/**
 * Where a put of the file would change nothing that any reader sees, because a majority of the regions has the object,
 * and no region that answers has another one. Undefined where it would, or where no majority says so.
 */
async function equality(
  file: LocalFile,
  group: KeyGroup,
  known: Known | undefined,
  listing: KeyListing,
  job: SyncJob,
  context: SyncContext,
): Promise<Equality | undefined> {
  const { stores } = context;
  const isEverywhere = group.manifests.length === stores.length;
  const etag =
    group.manifests.length < stores.length - listing.regionsFailed.length ? undefined : commonEtag(group, context);
  if (!job.checksum && isEverywhere && areKnown(known, file.status, etag)) return { known, generation: 0, silent: [] };
  const holders = new Set(group.manifests.map(({ store }) => store));
  const unlisted = stores.filter((store) => !holders.has(store)).map(({ region }) => region.name);
  const common = etag === undefined ? undefined : await currentManifest(group, context).catch(() => undefined);
  const held =
    etag === undefined ? await heldByMajority(group.key, context) : common && { manifest: common, silent: unlisted };
  if (held === undefined || !(await isAsConfigured(held.manifest, context.config))) return undefined;
  // An object that cannot be decrypted is replaced.
  const shown = await shownManifest(held.manifest, context.config).catch(() => undefined);
  if (shown?.bytes !== file.status.size || !isDescribedAs(shown, descriptionOf(file, job, context))) return undefined;
  const same = { generation: held.manifest.generation, silent: held.silent };
  if (!job.checksum && areKnown(known, file.status, etag)) return { ...same, known };
  const readMs = Date.now();
  if ((await sha256Of(file.path, context.signal)) !== shown.sha256) return undefined;
  return { ...same, known: knownOf(file.status, etag, readMs) };
}

/**
 * The manifest that a majority of the regions has, and every region that answers; `silent` are the others. A killed put
 * leaves some with another one, and a put that failed may have left it in a minority.
 */
async function heldByMajority(
  key: string,
  context: SyncContext,
): Promise<{ readonly manifest: Manifest; readonly silent: readonly string[] } | undefined> {
  const { newest, verdicts } = await checkManifests(key, context);
  const sound = verdicts.filter(({ state }) => state === "sound").length;
  const silent = verdicts.filter(({ state }) => state === "unreachable").map(({ region }) => region);
  const isInAll = sound + silent.length === verdicts.length;
  if (!isInAll || sound < majorityOf(verdicts) || newest === undefined || isTombstone(newest)) return undefined;
  return { manifest: newest, silent };
}

async function storeAll(
  job: SyncJob,
  files: readonly LocalFile[],
  { listed, isAbsenceKnown }: Difference,
  context: SyncContext,
): Promise<StoreOutcome[]> {
  const { transfer, progress, report } = context;
  if (job.dryRun) {
    for (const { key, status } of files) await report({ key, outcome: "stored", bytes: status.size });
    return [];
  }
  const stored = await storeFiles(
    files,
    {
      transfer,
      progress,
      bytesOf: ({ status }) => status.size,
      isAbsent: ({ key }) => isAbsenceKnown && !listed.has(key),
      etagOf: ({ key }) => listed.get(key),
      store: (file, parts, known) => storeSettled(file, known, job, { ...context, ...parts }),
      onOutcome: async (outcome) => {
        const { key } = outcome;
        if (outcome.outcome === "failed") await report(outcome);
        else if (outcome.outcome === "kept") {
          const regions = outcome.regionsWithoutManifest.map(({ region }) => region);
          await report({ key, outcome: "kept", regions });
        } else if (outcome.outcome !== "unchanged") {
          const { bytes, generation } = outcome;
          await report({ key, outcome: "stored", bytes, generation });
        }
      },
    },
    context,
  );
  const incomplete = stored.filter(isIncomplete).length;
  if (incomplete > 0) context.onIncomplete(incomplete);
  // An interruption ends the completion of late regions early. Pages and removals, which would follow, must not begin.
  context.signal.throwIfAborted();
  return stored;
}

/** Whether some region lacks a part of what was stored. */
function isIncomplete(result: StoreOutcome): boolean {
  if (result.outcome === "failed" || result.outcome === "kept") return false;
  return result.missing.length + result.regionsWithoutManifest.length > 0;
}

/**
 * Stores a file again when it has changed in the meantime, so that what is stored is what the folder has in the end.
 */
async function storeSettled(file: LocalFile, known: KnownKey, job: SyncJob, context: SyncContext): Promise<PutResult> {
  const { progress } = context;
  const { path, key } = file;
  const object = { key, source: fileSource(path), ...descriptionOf(file, job, context), force: false, examine: true };
  const onBytes = (_pass: string, bytes: number): void => progress.add(bytes);
  const look = (): Promise<Stats> =>
    stat(path).catch((error: unknown) => {
      throw unreadable(path, error);
    });
  let isStored = false;
  for (let tries = 0; tries < TRIES; tries++) {
    const before = signatureOf(await look());
    let failure: unknown;
    const result: PutResult | undefined = await putOverOrigin(
      { ...object, ...(tries === 0 && known), onBytes },
      context,
    ).catch((error: unknown) => {
      failure = error;
      return undefined;
    });
    if (signatureOf(await look()) === before) {
      if (result) return isStored ? { ...result, outcome: "stored" } : result;
      throw failure;
    }
    isStored ||= result?.outcome === "stored" || result?.outcome === "completed";
    if (context.signal.aborted) throw failure ?? context.signal.reason;
  }
  const message = `${path} has changed in each of ${TRIES} tries to store it: sync again when its writer has ended`;
  throw new AgaroseError("FILE_UNREADABLE", message, { path });
}

async function removeAll(job: SyncJob, groups: readonly KeyGroup[], context: SyncContext): Promise<void> {
  // A condition is looked at under its own claim.
  const claimed = job.dryRun || job.deleteAfter > 0 ? [] : groups;
  const keys = claimed.map((group) => ({ key: group.key, etag: etagOfAll(group, context) }));
  const listed = keys.filter(({ etag }) => etag !== undefined);
  await withBatches(listed, context, async (batches, parts) => {
    const removing = mapOrdered(groups, REMOVED_AT_A_TIME, async (group) => {
      const { key } = group;
      try {
        if (!job.dryRun) await batches.write(key, (claim) => removeOne(group, job, parts, claim));
        await context.report({ key, outcome: "removed" });
      } catch (error) {
        context.signal.throwIfAborted();
        const known = toAgaroseError(error);
        // A writer that has stored it in the meantime wants it.
        if (job.deleteAfter > 0 && known.code === "REPLACED_MEANWHILE") return;
        await context.report({ key, outcome: "failed", error: known });
      }
    });
    for await (const _ of removing);
  });
}

async function removeOne(
  group: KeyGroup,
  { deleteAfter }: SyncJob,
  context: SyncContext,
  claim: BatchClaim | undefined,
): Promise<unknown> {
  if (deleteAfter === 0) return removeOverOrigin(group.key, context, { claim });
  return removeObject(group.key, context, { onlyIf: await onlyListed(group, context) });
}

/**
 * Throws REPLACED_MEANWHILE unless the newest record is the one that a majority has listed, whose age is known. Where
 * ETags do not name contents, it is the one that a majority has now.
 */
async function onlyListed(
  group: KeyGroup,
  context: SyncContext,
): Promise<(newest: ManifestRecord | undefined) => void> {
  const isNamed = md5In(majorityEtag(group, context)) !== undefined;
  const listed = isNamed ? await majorityRecord(group, context) : (await readRecord(group.key, context)).record;
  return (newest) => {
    if (newest !== undefined && newest.generation === listed?.generation) return;
    throw replacedMeanwhile(group.key, {}, "it stays");
  };
}

function descriptionOf({ key }: LocalFile, { headers }: SyncJob, { config }: SyncContext): Described {
  return { contentType: contentTypeOf(key), headers: headersOf(key, config.headers, headers) };
}
