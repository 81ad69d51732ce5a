/** Whether a migration may begin: that of the regions before has to be over. */
import { AgaroseError } from "@agarose/core";
import type { DeploymentParts } from "../../parts.ts";
import { majorityOf } from "../../commit/write-context.ts";
import { requireMajority, type FailedRegion } from "../../listing/keys.ts";
import { checkManifests } from "../../objects/verify-object.ts";
import type { Store } from "../../buckets/store.ts";
import { keyGroups, type KeyGroup } from "../../listing/key-groups.ts";
import { mapOrdered } from "../../listing/ordered-pool.ts";

const OBJECTS_AT_A_TIME = 16;
const SHOWN_MAX = 100;

/**
 * Resolves when a majority of the regions has the newest manifest or tombstone of every key. One that was taken by a
 * majority of fewer regions, and not moved yet, is in fewer: further regions could form a majority that misses it. A
 * region that does not answer counts as one without. Throws USAGE when some key is in fewer, and
 * NO_QUORUM when too few regions can be listed.
 */
export async function checkSettled(context: DeploymentParts): Promise<void> {
  const { stores, signal } = context;
  const needed = majorityOf(stores);
  const failed: FailedRegion[] = [];
  const onFailure = ({ region }: Store, { message }: AgaroseError): void => {
    failed.push({ region: region.name, problem: message });
  };
  const groups = keyGroups(stores, "", signal, { kinds: ["manifests"], onFailure });
  const unsettled = async (group: KeyGroup): Promise<string[]> => {
    if (countOfCommon(group) >= needed) return [];
    const { verdicts } = await checkManifests(group.key, context);
    return verdicts.filter(({ state }) => state === "sound").length >= needed ? [] : [group.key];
  };
  const keys: string[] = [];
  for await (const some of mapOrdered(groups, OBJECTS_AT_A_TIME, unsettled)) keys.push(...some);
  requireMajority("", failed, stores);
  if (keys.length === 0) return;
  throw new AgaroseError(
    "USAGE",
    `objects that are in fewer than ${needed} of ${stores.length} regions: ${keys.length}, such as ` +
      `${JSON.stringify(keys[0])}; end the migration before by its move, or run \`agarose scrub\``,
    { keys: keys.slice(0, SHOWN_MAX), needed },
  );
}

/** Of how many regions the listings have the same manifest of a key, at most. */
function countOfCommon({ manifests }: KeyGroup): number {
  const counts = new Map<string, number>();
  for (const { etag } of manifests) if (etag !== undefined) counts.set(etag, (counts.get(etag) ?? 0) + 1);
  return Math.max(0, ...counts.values());
}
