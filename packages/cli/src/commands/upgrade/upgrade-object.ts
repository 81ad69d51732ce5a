/**
 * Brings the manifest of one object from format 1 to format 2.
 */
import { acceptUnsigned, AgaroseError, isTombstone, type Manifest } from "@agarose/core";
import { commitAgain } from "../../lib/objects/commit/commit.ts";
import { surveyRegions, type Survey } from "../../lib/objects/commit/region-survey.ts";
import { majorityOf, writeContextOf, type WriteOptions } from "../../lib/objects/commit/write-context.ts";

export interface UpgradeContext extends WriteOptions {
  /** Whether to take the newest manifest where regions hold different ones. */
  readonly acceptsNewest: boolean;
}

/**
 * Gives an object of format 1 a manifest of generation 1. The chunks stay where they are. Undefined for an object that
 * was removed.
 *
 * @throws MANIFEST_UNTRUSTED where regions differ, NO_QUORUM, STORE_FAILED, REPLACED_MEANWHILE, WRITE_UNCERTAIN,
 *   CREDENTIALS_REFUSED or ABORTED.
 */
export async function upgradeObject(
  key: string,
  { acceptsNewest, ...options }: UpgradeContext,
): Promise<"upgraded" | "current" | undefined> {
  // Format 1 has no signatures, so the operator of an upgrade vouches for the content.
  const context = writeContextOf({ ...options, trust: acceptUnsigned });
  const survey = await surveyRegions(key, context);
  const { newest } = survey;
  if (newest && isTombstone(newest)) return undefined;
  // Only format 1 has generation 0.
  if (!newest || newest.generation > 0) return "current";
  if (!acceptsNewest) refuseDispute(newest, survey);
  await commitAgain(newest, survey, context);
  return "upgraded";
}

/**
 * An upgrade signs what no one has signed before. One bucket alone must not decide what that is, so all regions that
 * hold a manifest must hold the same, and they must be a majority.
 */
function refuseDispute(newest: Manifest, { regions }: Survey): void {
  // By content, because format 1 was written in more than one way.
  const text = JSON.stringify(newest);
  const same = regions.filter(({ record }) => JSON.stringify(record) === text);
  const dissent = regions.filter((region) => region.bytes !== undefined && !same.includes(region));
  if (dissent.length === 0 && same.length >= majorityOf(regions)) return;
  const names = (of: Survey["regions"]): string[] => of.map(({ store }) => store.region.name);
  throw new AgaroseError(
    "MANIFEST_UNTRUSTED",
    `${same.length} of ${regions.length} regions hold version ${newest.version} of ${JSON.stringify(newest.key)}, the ` +
      `newest, and ${dissent.length} hold something else (${names(dissent).join(", ")}): check the content with ` +
      "`agarose get`, then put it again or upgrade it with --accept-newest",
    { key: newest.key, version: newest.version, same: names(same), others: names(dissent) },
  );
}
