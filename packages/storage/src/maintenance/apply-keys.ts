/**
 * Applies the keys of the configuration to one object that is stored: its manifest gets a signature by the current key,
 * and its data key is encrypted by the first secret. No chunk is moved.
 */
import { randomBytes } from "node:crypto";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { succeeds } from "@agarose/core/async";
import { sealDataKey } from "@agarose/core/encryption";
import {
  acceptUnsigned,
  areSame,
  encodeManifest,
  isTombstone,
  parseManifest,
  refuseTooLarge,
  sealManifest,
  type Manifest,
  type ManifestRecord,
} from "@agarose/core/format";
import { readChecked } from "@agarose/core/sources";
import type { Store } from "../buckets/store.ts";
import { commitAgain } from "../commit/commit.ts";
import { askHistory, type HistoryCopy } from "../commit/history.ts";
import { writeRecord } from "../commit/manifest-write.ts";
import { holds, surveyRegions, type Survey } from "../regions/region-survey.ts";
import { majorityOf, writeContextOf, type WriteContext, type WriteOptions } from "../commit/write-context.ts";
import { secretsOf, type EncryptionConfig } from "../encryption/secrets-of.ts";
import { refuseUnread, youngVersions } from "../history/kept-versions.ts";
import { nodeSha256 } from "../objects/sha256.ts";
import { askRegions, isConditionFailed } from "../regions/ask-regions.ts";
import { putRecord } from "../buckets/small-record.ts";
import { signingKeyId } from "../config/signing.ts";
import { walkObjects, type Walk, type WalkOptions } from "../listing/walk-objects.ts";
import type { DeploymentParts } from "../parts.ts";
import { addNumbers } from "./add-numbers.ts";

/** Dependencies of `applyKeys`, and the doubtful manifests that it accepts. */
interface ApplyKeysContext extends WriteOptions {
  /** Whether to take the newest manifest where regions hold different ones that no trusted key has signed. */
  readonly acceptsNewest: boolean;
  /** Whether to sign manifests that no trusted key has signed. Default: false. */
  readonly vouches?: boolean;
  /** The name of the key that signs; it signs what another one has signed. Default: none does. */
  readonly keyId?: string | undefined;
  /** Whether only to say what is due. Default: false. */
  readonly dryRun?: boolean;
}

/** `due`: a dry run would have changed it. */
export type AppliedKeys = "applied" | "due" | "current";

/**
 * Gives a manifest that another key has signed a new signature, and an encrypted object its data key by the first
 * secret. Undefined for an object that was removed.
 *
 * @throws MANIFEST_UNTRUSTED also where regions differ, NO_QUORUM, STORE_FAILED, REPLACED_MEANWHILE, WRITE_UNCERTAIN,
 *   CREDENTIALS_REFUSED, SECRET_WRONG, DECRYPTION_FAILED, CONFIG_INVALID or ABORTED.
 */
export async function applyKeys(
  key: string,
  { acceptsNewest, vouches = false, keyId, dryRun = false, ...options }: ApplyKeysContext,
): Promise<AppliedKeys | undefined> {
  const context = writeContextOf(options);
  const changed = dryRun ? "due" : "applied";
  const trusted = await trustedSurvey(key, context);
  if (trusted?.newest) {
    const newest = await withFirstSecret(trusted.newest, context.config);
    const isSigned = keyId === undefined || newest.signature?.keyId === keyId;
    const isCurrent = isSigned && newest === trusted.newest;
    if (!isCurrent && !dryRun) await commitAgain(newest, trusted, context);
    const isDone = isCurrent && !(await complete(newest, trusted, { ...context, dryRun }));
    if (isTombstone(newest)) return undefined;
    return isDone ? "current" : changed;
  }
  // The operator vouches for what no trusted key has signed.
  const trusting = { ...context, trust: acceptUnsigned };
  const survey = await surveyRegions(key, trusting);
  const { newest } = survey;
  if (!newest) return "current";
  if (!vouches) {
    if (isTombstone(newest)) return undefined;
    // A put between the two looks is no stranger's.
    if (await isTrusted(newest, survey, context)) return "current";
    const message = `no trusted key has signed ${JSON.stringify(key)}: vouch for it to sign it all the same`;
    throw new AgaroseError("MANIFEST_UNTRUSTED", message, { key });
  }
  if (!acceptsNewest) refuseDispute(newest, survey);
  if (!dryRun) await commitAgain(newest, survey, trusting);
  return isTombstone(newest) ? undefined : changed;
}

/** Undefined where a majority may hold what no trusted key has signed. It throws else as `surveyRegions` does. */
async function trustedSurvey(key: string, context: WriteContext): Promise<Survey | undefined> {
  try {
    return await surveyRegions(key, context);
  } catch (error) {
    if (toAgaroseError(error).code === "MANIFEST_UNTRUSTED") return undefined;
    throw error;
  }
}

/** Checks the bytes that the survey found: another look might miss the region that held them. */
async function isTrusted(newest: ManifestRecord, { regions }: Survey, { trust }: WriteContext): Promise<boolean> {
  const { bytes } = regions.find(({ record }) => record === newest)!;
  return succeeds(parseManifest(bytes!, { key: newest.key, trust, sha256: nodeSha256 }));
}

/**
 * Ends the work of a run that was interrupted: regions may still hold what another key or secret has made, which nobody
 * can use after a rotation. Returns whether any did.
 */
async function complete(
  newest: ManifestRecord,
  survey: Survey,
  { dryRun, ...context }: WriteContext & { readonly dryRun: boolean },
): Promise<boolean> {
  const lacking = survey.regions.filter(
    ({ record }) =>
      record !== undefined &&
      (record.signature?.keyId !== newest.signature?.keyId || secretIdOf(record) !== secretIdOf(newest)),
  );
  if (lacking.length === 0 || dryRun) return lacking.length > 0;
  const bytes = encodeManifest(newest);
  const holders = survey.regions.filter((region) => holds(region, bytes)).length;
  // A version that only a minority holds gets its own generation, as in a repair.
  if (holders < majorityOf(survey.regions)) await commitAgain(newest, survey, context);
  else {
    await context.fence?.check();
    const writes = await writeRecord(newest, lacking, context);
    const failed = writes.find(({ outcome }) => outcome === "failed");
    if (failed) throw failed.problem!;
  }
  return true;
}

function secretIdOf(record: ManifestRecord): string | undefined {
  return isTombstone(record) ? undefined : record.encryption?.secret;
}

/**
 * Signs what no one has signed before only where one bucket alone does not decide what that is: all regions that hold a
 * manifest must hold the same, and they must be a majority.
 */
function refuseDispute(newest: ManifestRecord, { regions }: Survey): void {
  const same = regions.filter(({ record }) => areSame(record, newest));
  const dissent = regions.filter((region) => region.bytes !== undefined && !same.includes(region));
  if (dissent.length === 0 && same.length >= majorityOf(regions)) return;
  const version = isTombstone(newest) ? "(removed)" : newest.version;
  const names = (of: Survey["regions"]): string[] => of.map(({ store }) => store.region.name);
  throw new AgaroseError(
    "MANIFEST_UNTRUSTED",
    `${same.length} of ${regions.length} regions hold version ${version} of ${JSON.stringify(newest.key)}, the ` +
      `newest, and ${dissent.length} hold something else (${names(dissent).join(", ")}): check the content with ` +
      "`agarose get`, then put it again or vouch for it and accept the newest",
    { key: newest.key, version, same: names(same), others: names(dissent) },
  );
}

const NONCE_BYTES = 12;

/**
 * The record with its data key encrypted by the first secret of the configuration. The same one where it is already,
 * where the object is not encrypted, and where the configuration has no secret for it.
 *
 * @throws SECRET_WRONG, DECRYPTION_FAILED, MANIFEST_NEWER, MANIFEST_INVALID or CONFIG_INVALID.
 */
async function withFirstSecret(record: ManifestRecord, config: EncryptionConfig): Promise<ManifestRecord> {
  if (isTombstone(record) || !record.encryption) return record;
  const secrets = secretsOf(config);
  const first = await secrets.forWriting(record.key);
  if (first === undefined || first.id === record.encryption.secret) return record;
  const dataKey = await secrets.dataKeyOf(record);
  const sealed = await sealDataKey(dataKey, first, record, randomBytes(NONCE_BYTES));
  return { ...record, encryption: { ...record.encryption, ...sealed } };
}

/**
 * Signs again what a key other than `keyId` has signed of the versions that are kept of a key, and encrypts their data
 * keys by the first secret: they would become unreadable with the old key or secret. Returns how many
 * versions get new copies, or with `dryRun` would. The time of a copy restarts, because a region counts it from the
 * moment in which it took the copy.
 *
 * @throws STORE_FAILED when no majority took the copies of a version, SECRET_WRONG, DECRYPTION_FAILED, CONFIG_INVALID,
 * or why a copy cannot be read.
 */
async function applyKeysToHistory(
  key: string,
  { keyId, vouches = false, dryRun = false, ...options }: Omit<ApplyKeysContext, "acceptsNewest">,
): Promise<number> {
  const own = writeContextOf(options);
  const context = vouches ? { ...own, trust: acceptUnsigned } : own;
  const kept = await youngVersions(key, context.stores.length, context);
  refuseUnread(kept, context);
  const due: Manifest[] = [];
  for (const manifest of kept.manifests) {
    const current = await withFirstSecret(manifest, context.config);
    const isSigned = keyId === undefined || manifest.signature?.keyId === keyId;
    if (!isSigned || current !== manifest) due.push(current as Manifest);
  }
  if (due.length === 0 || dryRun) return due.length;
  await context.fence?.check();
  const listed = (await askHistory(key, context.stores.length, context)).flatMap(({ value = [] }) => value);
  for (const manifest of due) await replaceCopies(manifest, listed, context);
  return due.length;
}

async function replaceCopies(
  { hashesRoot: _root, hashesSha256: _sha256, version: _version, signature: _signature, ...draft }: Manifest,
  listed: readonly HistoryCopy[],
  context: WriteContext,
): Promise<void> {
  const { key, upload, generation } = draft;
  const bytes = encodeManifest(await sealManifest(draft, nodeSha256, context.sign));
  await parseManifest(bytes, { key, trust: context.readerTrust, sha256: nodeSha256 });
  const own = Map.groupBy(
    listed.filter((copy) => copy.upload === upload),
    ({ store }) => store,
  );
  const stores = [...own.keys()];
  const enough = Math.min(stores.length, majorityOf(context.stores));
  const replace = async (store: Store, signal: AbortSignal): Promise<void> => {
    for (const copy of own.get(store)!) await replaceCopy(copy, draft, bytes, { ...context, signal });
  };
  const outcomes = await askRegions(stores, replace, { enough }, context);
  const failed = outcomes.flatMap(({ error }) => error ?? []);
  if (outcomes.length - failed.length >= enough) return;
  const message =
    `${outcomes.length - failed.length} of ${stores.length} regions took the new signature of the kept generation ` +
    `${generation} of ${JSON.stringify(key)}, ${enough} are needed: run the command again. First error: ${failed[0]!.message}`;
  throw new AgaroseError("STORE_FAILED", message, { key, generation, needed: enough }, failed[0]);
}

/** Replaces a copy where it still holds this version. One that a garbage collector has just removed stays away. */
async function replaceCopy(
  { store, name }: HistoryCopy,
  { key, upload }: Pick<Manifest, "key" | "upload">,
  bytes: Uint8Array,
  { signal, trust }: WriteContext,
): Promise<void> {
  const response = await store.get(name, { signal });
  const etag = response.headers.get("etag");
  if (response.status !== 200 || etag === null) {
    await response.body?.cancel();
    return;
  }
  const held = await parseManifest(await readChecked(response, refuseTooLarge), { key, trust, sha256: nodeSha256 });
  if ((held as Manifest).upload !== upload) return;
  await putRecord(store, name, bytes, { ifMatch: etag, signal }).catch((error: unknown) => {
    if (!isConditionFailed(error)) throw error;
  });
}

/** The objects to re-sign and re-encrypt. */
export interface ApplyKeysOptions extends WalkOptions, Pick<ApplyKeysContext, "vouches" | "dryRun"> {
  /** With `vouches`: whether to take the newest manifest where regions hold different ones. Default: false. */
  readonly acceptsNewest?: boolean;
  readonly onOutcome: (outcome: ApplyKeysOutcome) => Promise<void>;
}

/** The outcome of one object. */
export type ApplyKeysOutcome =
  | { readonly key: string; readonly outcome: AppliedKeys }
  | { readonly key: string; readonly outcome: "failed"; readonly error: AgaroseError };

/** How many objects came to which end. */
export type ApplyKeysTotals = Readonly<Record<ApplyKeysOutcome["outcome"], number>>;

const NONE: ApplyKeysTotals = { applied: 0, due: 0, current: 0, failed: 0 };
const OBJECTS_AT_A_TIME = 4;

/** Walks once. A failure of one object is an outcome. It throws as `walkObjects` does. */
export async function applyKeysToObjects(
  options: ApplyKeysOptions,
  context: DeploymentParts,
): Promise<ApplyKeysTotals> {
  const { vouches = false, acceptsNewest = false, dryRun = false, onOutcome } = options;
  const own = { ...context, vouches, acceptsNewest, dryRun, keyId: await signingKeyId(context.config) };
  const walk: Walk<ApplyKeysOutcome, ApplyKeysTotals> = {
    name: `keys apply${dryRun ? " dry" : ""}`,
    options,
    objectsAtATime: OBJECTS_AT_A_TIME,
    act: (key) => applyToOne(key, own),
    add: (totals, { outcome }) => addNumbers(totals, { [outcome]: 1 }),
    onResult: onOutcome,
  };
  return walkObjects(walk, NONE, context);
}

/** Undefined for an object that was removed, and of which no kept version was re-signed. */
async function applyToOne(
  key: string,
  context: DeploymentParts & ApplyKeysContext,
): Promise<ApplyKeysOutcome | undefined> {
  try {
    const outcome = await applyKeys(key, context);
    const copies = await applyKeysToHistory(key, context);
    if (copies > 0) return { key, outcome: context.dryRun ? "due" : "applied" };
    return outcome && { key, outcome };
  } catch (error) {
    context.signal.throwIfAborted();
    return { key, outcome: "failed", error: toAgaroseError(error) };
  }
}
