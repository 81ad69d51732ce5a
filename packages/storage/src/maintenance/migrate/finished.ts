/** Whether a migration may begin, and whether the regions and names that it omits may go. */
import { AgaroseError } from "@agarose/core";
import { CHUNK_PREFIX, isTombstone } from "@agarose/core/format";
import type { Store } from "../../buckets/store.ts";
import { majorityOf } from "../../commit/write-context.ts";
import type { DeploymentParts } from "../../parts.ts";
import { keptVersions } from "../../history/kept-versions.ts";
import { checkManifests } from "../../objects/verify-object.ts";
import { hasFormerName } from "../../buckets/region-names.ts";
import { keyGroups, type KeyGroup } from "../../listing/key-groups.ts";
import { requireMajority, type FailedRegion } from "../../listing/keys.ts";
import { mapOrdered, allOf } from "../../listing/adaptive-pool.ts";

const OBJECTS_AT_A_TIME = 16;
const SHOWN_MAX = 100;

/**
 * Resolves when the regions `left` hold no chunk, every other region has the newest manifest or tombstone of every key,
 * and nothing has a former name of a region. Throws USAGE when that is not so, and what listing a region throws: only
 * there may something be.
 */
export async function checkFinished(left: readonly string[], context: DeploymentParts): Promise<void> {
  const { stores, signal } = context;
  for (const store of stores.filter(({ region }) => left.includes(region.name))) {
    for await (const { name } of store.list(CHUNK_PREFIX, signal)) {
      throw new AgaroseError(
        "USAGE",
        `region ${store.region.name} still has chunks, such as ${name}: end the move, then remove what no manifest ` +
          "names with `agarose gc`; versions that `keep` keeps stay for their time",
        { region: store.region.name, name },
      );
    }
  }
  const groups = keyGroups(stores, "", signal, { kinds: ["manifests", "history"] });
  const keys: string[] = [];
  const kept: string[] = [];
  const look = async (group: KeyGroup): Promise<void> => {
    if (!(await isFinished(group, left, context))) keys.push(group.key);
    else if (await keepsFormerName(group, context)) kept.push(group.key);
  };
  for await (const _ of mapOrdered(groups, OBJECTS_AT_A_TIME, look));
  if (keys.length > 0) {
    throw new AgaroseError(
      "USAGE",
      `objects that did not arrive in every region: ${keys.length}, such as ${JSON.stringify(keys[0])}; move again`,
      { keys: keys.slice(0, SHOWN_MAX) },
    );
  }
  if (kept.length === 0) return;
  throw new AgaroseError(
    "USAGE",
    `objects of which \`keep\` keeps versions: ${kept.length}, such as ${JSON.stringify(kept[0])}. These have the ` +
      "former name of a region: finish again once their time is over and `agarose gc` has removed them",
    { keys: kept.slice(0, SHOWN_MAX) },
  );
}

/** Whether every region but those of `left` has the newest manifest of a key, and it names none of `left`. */
async function isFinished({ key }: KeyGroup, left: readonly string[], context: DeploymentParts): Promise<boolean> {
  const { verdicts, newest } = await checkManifests(key, context);
  if (verdicts.some(({ region, state }) => state !== "sound" && !left.includes(region))) return false;
  if (!newest || isTombstone(newest)) return true;
  const names = [...newest.placement, ...(newest.leaves ?? []), ...(newest.extra?.placement ?? [])];
  return !names.some((name) => left.includes(name)) && !hasFormerName(newest, context.config.regions);
}

/** Whether a kept version of a key has a name that a region had before. */
async function keepsFormerName({ key, history }: KeyGroup, context: DeploymentParts): Promise<boolean> {
  const { regions } = context.config;
  if (history.length === 0 || regions.every(({ formerly }) => formerly === undefined)) return false;
  const { versions, problems } = await keptVersions(key, context.stores.length, context);
  // An unreadable manifest may have the name.
  if (problems.length > 0) throw problems[0]!.problem;
  return versions.some(({ manifest }) => hasFormerName(manifest, regions));
}

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
  const keys = (await allOf(mapOrdered(groups, OBJECTS_AT_A_TIME, unsettled))).flat();
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
