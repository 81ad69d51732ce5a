/**
 * Which keys nothing was ever stored under, by listings: one request for a thousand keys in place of one for each.
 */
import type { AgaroseError } from "@agarose/core";
import { encodeKey } from "@agarose/core/format";
import { majorityOf, type RegionParts } from "../commit/write-context.ts";
import type { Store } from "../buckets/store.ts";
import { keyGroups } from "./key-groups.ts";

/** Below it, looking at each key is as quick. */
const KEYS_MIN = 10;
/** So many others may be listed for each key. A page of a listing has a thousand. */
const LISTED_PER_KEY = 100;

/**
 * The keys of `keys` that a majority of the regions does not list, as it was a moment ago. It leaves out what it does
 * not know: all keys when too many regions fail, and the last ones when the listing is long.
 */
export async function findAbsentKeys(
  keys: readonly string[],
  { stores, clock, breaker, signal }: RegionParts,
): Promise<ReadonlySet<string>> {
  if (keys.length < KEYS_MIN) return new Set();
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
  for await (const { key } of keyGroups(stores, commonPrefix(keys), signal, options)) {
    absent.delete(key);
    if (++listed < LISTED_PER_KEY * keys.length) continue;
    // Listings are in the order of the names, so nothing is known of what follows.
    for (const one of keys) if (`${encodeKey(one)}@` > `${encodeKey(key)}@`) absent.delete(one);
    break;
  }
  return !isRefused && stores.length - failures >= majorityOf(stores) ? absent : new Set();
}

function commonPrefix(keys: readonly string[]): string {
  const [first, last] = [keys.reduce((a, b) => (a < b ? a : b)), keys.reduce((a, b) => (a > b ? a : b))];
  let length = 0;
  while (length < first.length && first[length] === last[length]) length++;
  // Half of a surrogate pair cannot be encoded.
  return first.slice(0, length).replace(/[\ud800-\udbff]$/, "");
}
