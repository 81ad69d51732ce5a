/** The state of the regions for many keys, by listings: one request for a thousand keys in place of one for each. */
import type { AgaroseError } from "@agarose/core";
import { keyName } from "@agarose/core/format";
import { majorityOf, type RegionParts } from "../commit/write-context.ts";
import type { Store } from "../buckets/store.ts";
import { keyGroups } from "./key-groups.ts";
import { etagOfAll } from "./listed-object.ts";

/** Below it, looking at each key is as quick. */
const KEYS_MIN = 10;
/** So many others may be listed for each key. A page of a listing has a thousand. */
const LISTED_PER_KEY = 100;

/** The state of keys by listings, as it was a moment ago. */
export interface ListedKeys {
  /** Nothing was ever stored under these: a majority of the regions does not list them. */
  readonly absent: ReadonlySet<string>;
  /** The ETag of the manifest that all regions list. */
  readonly etags: ReadonlyMap<string, string>;
}

/**
 * Lists `keys`. It omits those that it does not know: all keys when too many regions fail, and the last ones when the
 * listing is long.
 */
export async function listKeys(keys: readonly string[], context: RegionParts): Promise<ListedKeys> {
  const { stores, clock, breaker, signal } = context;
  const etags = new Map<string, string>();
  if (keys.length < KEYS_MIN) return { absent: new Set(), etags };
  const absent = new Set(keys);
  let failures = 0;
  let isRefused = false;
  const onFailure = ({ region }: Store, { code }: AgaroseError): void => {
    failures++;
    // Keys that may not list may still write. Those that may do neither are refused by the look at a manifest.
    if (code === "CREDENTIALS_REFUSED") isRefused = true;
    else breaker.open(region.name);
  };
  let listed = 0;
  const options = { kinds: ["manifests"], clock, onFailure } as const;
  for await (const group of keyGroups(stores, commonPrefix(keys), signal, options)) {
    const { key } = group;
    const etag = etagOfAll(group, context);
    if (absent.delete(key) && etag !== undefined) etags.set(key, etag);
    if (++listed < LISTED_PER_KEY * keys.length) continue;
    // Listings are in the order of the names, so nothing is known of what follows.
    for (const one of keys) if (keyName(one) > keyName(key)) absent.delete(one);
    break;
  }
  const isKnown = !isRefused && stores.length - failures >= majorityOf(stores);
  return { absent: isKnown ? absent : new Set(), etags };
}

function commonPrefix(keys: readonly string[]): string {
  const [first, last] = [keys.reduce((a, b) => (a < b ? a : b)), keys.reduce((a, b) => (a > b ? a : b))];
  let length = 0;
  while (length < first.length && first[length] === last[length]) length++;
  // Half of a surrogate pair cannot be encoded.
  return first.slice(0, length).replace(/[\ud800-\udbff]$/, "");
}
