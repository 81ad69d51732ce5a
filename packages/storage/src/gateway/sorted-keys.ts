/**
 * The keys below a prefix in the order of S3.
 *
 * Regions list the names of manifests, whose order is another one: `a.txt` comes before `a`. A client that merges a
 * list with its own files, as `aws s3 sync` does, takes a key out of order for one that is missing. So a list is made
 * whole and sorted. Its later pages come from that one list.
 */
import { compareUtf8 } from "@agarose/s3-server";
import { parseKey } from "@agarose/core/format";
import type { DeploymentParts } from "../parts.ts";
import type { KnownRegions } from "../regions/known-regions.ts";
import { KeyListing, liveGroups } from "../listing/keys.ts";
import type { Consistency } from "../objects/manifests.ts";
import type { ListedObject } from "../buckets/store.ts";
import { majorityEtag } from "../listing/listed-object.ts";

type Context = DeploymentParts & { readonly knownRegions: KnownRegions; readonly consistency: Consistency };

/** Keys in the order of S3. */
export interface Listed {
  readonly keys: readonly string[];
  /** Where pages of it have ended. A client may name any other key too, from which it wants a new list. */
  readonly ends: Set<string>;
  /** The ETags that a majority has listed just now, of the first keys. */
  readonly etags: ReadonlyMap<string, string>;
  /** The plain objects of the origin whose keys no region knows, by key. */
  readonly plain: ReadonlyMap<string, PlainObject>;
  readonly atMs: number;
}

/** A plain object that no region has yet. */
type PlainObject = Pick<ListedObject, "bytes" | "modifiedMs"> & { readonly etag: string };

const LISTS_MAX = 4;
/** A page has 1,000 keys, and its order is almost that of the regions. */
const ETAGS_MAX = 10_000;
const NO_ETAGS: ReadonlyMap<string, string> = new Map();
const LIST_MS_MAX = 5 * 60_000;

/** Lists keys, and keeps the latest lists for their later pages. */
export class SortedKeys {
  readonly #context: Context;
  readonly #nowMs: () => number;
  readonly #hasRemoved: boolean;
  readonly #lists = new Map<string, Listed>();

  /** @param hasRemoved whether to list the keys of removed objects too, as long as their tombstones stay. */
  constructor(context: Context, nowMs: () => number, hasRemoved = false) {
    this.#context = context;
    this.#nowMs = nowMs;
    this.#hasRemoved = hasRemoved;
  }

  /**
   * Returns all keys below `prefix`. Throws NO_QUORUM when too few regions answer: a list that lacks keys
   * would make a client remove them elsewhere.
   *
   * @param after where the client continues: the list of an earlier page will do if one ended there.
   */
  async below(prefix: string, after: string): Promise<Listed> {
    const known = this.#lists.get(prefix);
    this.#lists.delete(prefix);
    const isKept = known !== undefined && known.ends.has(after) && this.#nowMs() - known.atMs < LIST_MS_MAX;
    const listed = isKept ? known : await this.#list(prefix);
    this.#lists.set(prefix, { ...listed, etags: NO_ETAGS });
    if (this.#lists.size > LISTS_MAX) this.#lists.delete(this.#lists.keys().next().value!);
    return listed;
  }

  async #list(prefix: string): Promise<Listed> {
    const listing = new KeyListing(prefix, this.#context);
    const keys: string[] = [];
    const etags = new Map<string, string>();
    const { consistency, knownRegions, origin, signal } = this.#context;
    const isEventual = consistency === "eventual";
    const known = new Set<string>();
    const groups = async function* () {
      for await (const group of listing.groups()) {
        if (origin) known.add(group.key);
        yield group;
      }
    };
    const { regionsFailed } = listing;
    const live = { consistency, knownRegions };
    const listed = this.#hasRemoved ? groups() : liveGroups({ groups, regionsFailed }, this.#context, live);
    for await (const group of listed) {
      keys.push(group.key);
      const etag = isEventual || etags.size === ETAGS_MAX ? undefined : majorityEtag(group, this.#context);
      if (etag !== undefined) etags.set(group.key, etag);
    }
    // A list that lacks keys would make a client remove them elsewhere.
    if (!listing.complete && !isEventual) throw listing.incomplete();
    const plain = new Map<string, PlainObject>();
    for await (const { name, bytes, modifiedMs, etag = '""' } of origin?.list?.(prefix, signal) ?? []) {
      if (!known.has(name) && isKey(name)) plain.set(name, { bytes, modifiedMs, etag });
    }
    return {
      keys: [...keys, ...plain.keys()].toSorted(compareUtf8),
      ends: new Set(),
      etags,
      plain,
      atMs: this.#nowMs(),
    };
  }
}

/** Other programs may have stored names that are no keys. */
function isKey(name: string): boolean {
  try {
    return parseKey(name) === name;
  } catch {
    return false;
  }
}
