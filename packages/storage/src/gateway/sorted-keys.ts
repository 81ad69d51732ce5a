/**
 * The keys below a prefix in the order of S3, in constant memory: names in the regions are in that order, and so are
 * the objects of an origin.
 */
import { compareUtf8, type ListedKey } from "@agarose/s3-server";
import type { DeploymentParts } from "../parts.ts";
import type { KnownRegions } from "../regions/known-regions.ts";
import { judgedGroups, KeyListing, isKey } from "../listing/keys.ts";
import type { KeyGroup } from "../listing/key-groups.ts";
import type { Consistency } from "../objects/manifests.ts";
import type { ListedObject } from "../buckets/store.ts";

/** A key, and what has just been listed of it. */
export interface FoundKey extends ListedKey {
  /** Undefined where only the origin has the key. */
  readonly group?: KeyGroup;
  /** The object of the origin, where no region knows the key. */
  readonly plain?: ListedObject;
}

/**
 * The keys behind `after`. Throws NO_QUORUM when too few regions answer: a list that lacks keys would make a client
 * remove them elsewhere.
 *
 * @param hasRemoved whether to list the keys of removed objects too, as long as their tombstones stay.
 */
export async function* keysBehind(
  after: string,
  prefix: string,
  context: DeploymentParts & { readonly knownRegions: KnownRegions; readonly consistency: Consistency },
  hasRemoved = false,
): AsyncGenerator<FoundKey> {
  const { consistency, origin, signal } = context;
  const listing = new KeyListing(prefix, context, { after: after || undefined });
  const requireAll = (): void => {
    if (consistency !== "eventual") listing.requireComplete();
  };
  const objects = origin?.list?.(prefix, signal, after || undefined)[Symbol.asyncIterator]();
  const nextPlain = async (): Promise<ListedObject | undefined> => {
    for (;;) {
      const { done, value } = (await objects?.next()) ?? { done: true };
      if (done) return undefined;
      if (isKey(value.name)) return value;
    }
  };
  let plain = await nextPlain();
  for await (const { group, isLive } of judgedGroups(listing, context, context)) {
    for (; plain && compareUtf8(plain.name, group.key) < 0; plain = await nextPlain()) {
      requireAll();
      yield { key: plain.name, plain };
    }
    // The regions decide about a key, also that its object was removed.
    if (plain?.name === group.key) plain = await nextPlain();
    requireAll();
    if (isLive || hasRemoved) yield { key: group.key, group };
  }
  requireAll();
  for (; plain; plain = await nextPlain()) yield { key: plain.name, plain };
}
