/** Gives manifests and buckets the name that a region has now. */
import { isTombstone, systemClock } from "@agarose/core";
import type { DeploymentParts } from "../parts.ts";
import { Breaker } from "../regions/ask-regions.ts";
import { commitAgain } from "../commit/commit.ts";
import { renameRegion } from "../commit/fence.ts";
import { surveyRegions } from "../regions/region-survey.ts";
import { writeContextOf, type WriteOptions } from "../commit/write-context.ts";
import { hasFormerName } from "../buckets/region-names.ts";

/**
 * Commits the manifest of a key again, where it has a former name of a region. Chunks stay where they are. Returns
 * whether it did.
 *
 * @throws NO_QUORUM, STORE_FAILED, REPLACED_MEANWHILE, WRITE_UNCERTAIN, CREDENTIALS_REFUSED, MANIFEST_NEWER or ABORTED.
 */
export async function renameRegions(key: string, options: WriteOptions): Promise<boolean> {
  const context = writeContextOf(options);
  const survey = await surveyRegions(key, context);
  const { newest } = survey;
  if (!newest || isTombstone(newest) || !hasFormerName(newest, context.config.regions)) return false;
  await commitAgain(newest, survey, context);
  return true;
}

/** Writes the new name of each renamed region into its control record. Rejects where that fails. */
export async function renameControl(deployment: DeploymentParts): Promise<void> {
  const context = { ...deployment, clock: systemClock, breaker: new Breaker(systemClock) };
  for (const store of deployment.stores) if (store.region.formerly !== undefined) await renameRegion(store, context);
}
