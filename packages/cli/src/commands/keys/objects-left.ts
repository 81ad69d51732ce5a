/**
 * Finds what a step of a rotation would make unreadable: objects, removed ones included, and versions that are kept.
 */
import type { ManifestRecord } from "@agarose/core/format";
import { READING, withContext, type GlobalOptions } from "../../lib/context.ts";
import { keepMsOf } from "@agarose/storage/commit/history";
import { keptVersions, refuseUnread } from "@agarose/storage/history/kept-versions";
import { checkManifests } from "@agarose/storage/objects/verify-object";
import { keyGroups, type KeyGroup } from "@agarose/storage/listing/key-groups";
import { mapOrdered } from "@agarose/storage/listing/ordered-pool";

const OBJECTS_AT_A_TIME = 16;

/**
 * Keys below `prefix` of which `isLeft` says so: for the newest record, or for a version whose time is not over.
 *
 * @throws what a region answers that cannot be listed or read: only there may an object be.
 */
export async function objectsLeft(
  prefix: string,
  isLeft: (record: ManifestRecord) => boolean,
  options: GlobalOptions,
): Promise<string[]> {
  return withContext(options, READING, async (context) => {
    const { stores, signal, config } = context;
    const listed = keyGroups(stores, prefix, signal, { kinds: ["manifests"] });
    const look = async ({ key }: KeyGroup): Promise<string[]> => {
      const { newest } = await checkManifests(key, context);
      if (newest && isLeft(newest)) return [key];
      if (keepMsOf(key, config) === 0) return [];
      const kept = await keptVersions(key, stores.length, context);
      refuseUnread(kept, context);
      const young = kept.versions.filter(({ keptUntilMs }) => keptUntilMs > Date.now());
      return young.some(({ manifest }) => isLeft(manifest)) ? [key] : [];
    };
    const left: string[] = [];
    for await (const keys of mapOrdered(listed, OBJECTS_AT_A_TIME, look)) left.push(...keys);
    return left.toSorted();
  });
}
