/**
 * Finds what a step of a rotation would make unreadable: objects, removed ones included, and versions that are kept.
 */
import type { ManifestRecord } from "@agarose/core/format";
import type { DeploymentParts } from "../parts.ts";
import { refuseUnread, youngVersions } from "../history/kept-versions.ts";
import { checkManifests } from "../objects/verify-object.ts";
import { keyGroups, type KeyGroup } from "../listing/key-groups.ts";
import { mapOrdered } from "../listing/adaptive-pool.ts";

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
  const left: string[] = [];
  for await (const keys of mapOrdered(listed, OBJECTS_AT_A_TIME, look)) left.push(...keys);
  return left.toSorted();
}
