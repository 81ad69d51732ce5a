/**
 * What the listings and the manifests say of a listed object, with as few requests as that takes.
 */
import { isTombstone, type Manifest } from "@agarose/core";
import { readRegion } from "../../lib/objects/commit/region-survey.ts";
import { majorityOf } from "../../lib/objects/commit/write-context.ts";
import { checkManifests } from "../../lib/objects/verify-object.ts";
import type { KeyGroup } from "../../lib/walk/key-groups.ts";
import type { SyncContext } from "./sync-job.ts";

type ListedContext = Pick<SyncContext, "stores" | "signal" | "trust" | "breaker">;

/** The ETag that a majority lists and no region contradicts. Equal ETags are equal manifests. */
export function commonEtag({ manifests }: KeyGroup, { stores }: ListedContext): string | undefined {
  const etag = manifests[0]?.etag;
  const isCommon = manifests.length >= majorityOf(stores) && manifests.every((manifest) => manifest.etag === etag);
  return isCommon ? etag : undefined;
}

/**
 * The current manifest of a listed key. One request where the regions list one ETag, else one to each region. Undefined
 * when no region has a manifest that can be used.
 */
export async function currentManifest(group: KeyGroup, context: ListedContext): Promise<Manifest | undefined> {
  const { key, manifests } = group;
  if (commonEtag(group, context) !== undefined) {
    // Spread over the regions by key.
    const { store, etag } = manifests[key.length % manifests.length]!;
    const found = await readRegion(key, store, context.signal, context.trust).catch(() => {
      context.signal.throwIfAborted();
      return undefined;
    });
    if (found?.record && found.etag === etag) return isTombstone(found.record) ? undefined : found.record;
  }
  const { newest } = await checkManifests(key, context);
  return newest === undefined || isTombstone(newest) ? undefined : newest;
}
