/** Gives manifests and buckets the name that a region has now. */
import { isTombstone } from "@agarose/core/format";
import { commitAgain } from "../commit/commit.ts";
import { renameRegion } from "../commit/fence.ts";
import { surveyRegions } from "../regions/region-survey.ts";
import type { WriteContext } from "../commit/write-context.ts";
import { hasFormerName } from "../buckets/region-names.ts";

/**
 * Commits the manifest of a key again, where it has a former name of a region. Chunks stay where they are. Returns
 * whether it did.
 *
 * @throws NO_QUORUM, STORE_FAILED, REPLACED_MEANWHILE, WRITE_UNCERTAIN, CREDENTIALS_REFUSED, MANIFEST_NEWER or ABORTED.
 */
export async function renameRegions(key: string, context: WriteContext): Promise<boolean> {
  const survey = await surveyRegions(key, context);
  const { newest } = survey;
  if (!newest || isTombstone(newest) || !hasFormerName(newest, context.config.regions)) return false;
  await commitAgain(newest, survey, context);
  return true;
}

/** Writes the new name of each renamed region into its control record. Rejects where that fails. */
export async function renameControl(context: WriteContext): Promise<void> {
  for (const store of context.stores) if (store.region.formerly !== undefined) await renameRegion(store, context);
}
