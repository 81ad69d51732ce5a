/**
 * Applies the keys of the configuration to one object that is stored: its manifest gets a signature by the current key,
 * and its data key is encrypted by the first secret. No chunk is moved.
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { succeeds } from "@agarose/core/async";
import { acceptUnsigned, encodeManifest, isTombstone, parseManifest, type ManifestRecord } from "@agarose/core/format";
import { commitAgain } from "../commit/commit.ts";
import { writeRecord } from "../commit/manifest-write.ts";
import { holds, surveyRegions, type Survey } from "../regions/region-survey.ts";
import { majorityOf, writeContextOf, type WriteContext, type WriteOptions } from "../commit/write-context.ts";
import { withFirstSecret } from "../encryption/replaced-secret.ts";
import { nodeSha256 } from "../objects/sha256.ts";

/** Dependencies of `applyKeys`, and the doubtful manifests that it accepts. */
export interface ApplyKeysContext extends WriteOptions {
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
  const text = JSON.stringify(newest);
  const same = regions.filter(({ record }) => JSON.stringify(record) === text);
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
