/** The keys that the buckets hold: the manifests of all regions that answer, merged. */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { isTombstone, keyName, parseKey } from "@agarose/core/format";
import type { Store } from "../buckets/store.ts";
import { majorityOf, type RegionParts, type WriteContext } from "../commit/write-context.ts";
import { readRecord, type ReadHow } from "../objects/manifests.ts";
import { checkManifests } from "../objects/verify-object.ts";
import { keyGroups, type KeyGroup, type Kind } from "./key-groups.ts";
import { etagOfAll, majorityEtag, majorityRecord, mayBeTombstone, mustBeTombstone } from "./listed-object.ts";
import { mapOrdered } from "./adaptive-pool.ts";
import { commonStart } from "../commit/names.ts";

const TOMBSTONES_AT_A_TIME = 16;

type CheckedManifests = Awaited<ReturnType<typeof checkManifests>>;

/** A region that could not be listed, and why. */
export interface FailedRegion {
  readonly region: string;
  readonly problem: string;
}

interface KeyListingOptions {
  /** The kinds to list in addition to manifests. */
  readonly kinds?: readonly Kind[];
  readonly after?: string | undefined;
  /** The last key to list. */
  readonly until?: string | undefined;
}

/** The keys that have a manifest or a tombstone in a region that answers, in constant memory. */
export class KeyListing {
  /** Filled while the groups are read. */
  readonly regionsFailed: FailedRegion[] = [];
  readonly #prefix: string;
  readonly #context: RegionParts;
  readonly #options: KeyListingOptions;

  constructor(prefix: string, context: RegionParts, options: KeyListingOptions = {}) {
    this.#prefix = prefix;
    this.#context = context;
    this.#options = options;
  }

  /** In order of their names. Rejects with the error of the first region when none can be listed. */
  async *groups(): AsyncGenerator<KeyGroup> {
    const { stores, signal, breaker, clock, shard, inventories } = this.#context;
    const { kinds = [], after, until } = this.#options;
    const errors: AgaroseError[] = [];
    const listing = keyGroups(stores, this.#prefix, signal, {
      kinds: ["manifests", ...kinds],
      ...(after !== undefined && { after }),
      until,
      clock,
      shard,
      inventories,
      onFailure: ({ region: { name } }, error) => {
        errors.push(error);
        breaker.open(name);
        this.regionsFailed.push({ region: name, problem: error.message });
      },
    });
    for await (const group of listing) if (group.manifests.length > 0) yield group;
    if (errors.length === stores.length) throw errors[0]!;
  }

  /** Whether the regions that answered hold every key: a put leaves its manifest in a majority of the regions. */
  get complete(): boolean {
    return this.regionsFailed.length < majorityOf(this.#context.stores);
  }

  /**
   * Throws NO_QUORUM when too few regions answered: keys may be missing from what was read, so a command that has gone
   * over all of it must not say that it is done.
   */
  requireComplete(): void {
    if (this.complete) return;
    requireMajority(this.#prefix, this.regionsFailed, this.#context.stores);
  }

  /** Warns about the regions that did not answer, and when keys may be missing. */
  warn(log: (line: string) => void): void {
    for (const { region, problem } of this.regionsFailed) log(`warning: ${region} did not answer: ${problem}`);
    if (!this.complete) log("warning: too few regions answered: keys may be missing from this list");
  }

  /** Does both, at the end of a list that must have every key. */
  end(log: (line: string) => void): void {
    this.warn(log);
    this.requireComplete();
  }
}

/** Throws NO_QUORUM when so many regions could not be listed that the others may lack a key. */
export function requireMajority(prefix: string, failed: readonly FailedRegion[], stores: RegionParts["stores"]): void {
  const [needed, answered] = [majorityOf(stores), stores.length - failed.length];
  // Of R regions, a majority holds each key, so the regions that answered must meet it.
  if (failed.length < needed) return;
  const what = prefix === "" ? "all keys" : `the keys that begin with ${JSON.stringify(prefix)}`;
  throw new AgaroseError(
    "NO_QUORUM",
    `${answered} of ${stores.length} regions listed ${what}, and at least ${stores.length - needed + 1} must, so keys may ` +
      "be missing: try again once they answer; a list with the consistency `eventual` shows what the others have. " +
      `First error: ${failed[0]!.region}: ${failed[0]!.problem}`,
    { answered, needed: stores.length - needed + 1, regions: failed.map(({ region }) => region) },
  );
}

/** Whether a name is a key. Other programs may have stored others, and a PoP names what it was asked for. */
export function isKey(name: string): boolean {
  try {
    return parseKey(name) === name;
  } catch {
    return false;
  }
}

/** The keys given. Throws USAGE beside a prefix, KEY_INVALID or KEY_TOO_LONG. */
export function givenKeys(keys: readonly string[], prefix: string | undefined): readonly string[] {
  if (keys.length > 0 && prefix !== undefined) throw new AgaroseError("USAGE", "give either keys or a prefix");
  return keys.map(parseKey);
}

/**
 * All keys below `prefix` of which a region may still show an object. `onWarning` hears of regions that fail.
 *
 * @throws NO_QUORUM when so many fail that keys may be missing.
 */
export async function removableKeys(
  prefix: string,
  context: RegionParts,
  onWarning: (line: string) => void,
): Promise<string[]> {
  const listing = new KeyListing(prefix, context);
  const keys: string[] = [];
  for await (const { key } of removableGroups(listing, context)) keys.push(key);
  listing.end(onWarning);
  return keys;
}

type Groups = Pick<KeyListing, "groups">;

/**
 * The groups of objects that exist. A majority decides, tombstones included; a read that is not strong omits those
 * whose newest record in any region is a tombstone. It rejects with READ_UNCERTAIN as a strong read does.
 */
export function liveGroups(
  listing: Groups & Pick<KeyListing, "regionsFailed">,
  context: WriteContext,
  how: ReadHow = {},
): AsyncGenerator<KeyGroup> {
  return living(judgedGroups(listing, context, how));
}

interface JudgedGroup {
  readonly group: KeyGroup;
  readonly isLive: boolean;
}

/** All groups, judged as `liveGroups` does. */
export function judgedGroups(
  listing: Groups & Pick<KeyListing, "regionsFailed">,
  context: WriteContext,
  how: ReadHow,
): AsyncGenerator<JudgedGroup> {
  if (how.consistency === "eventual")
    return judgedBy(listing, ({ newest }) => newest !== undefined && isTombstone(newest), context);
  const groups = async function* () {
    // Those that fail later have listed this group.
    for await (const group of listing.groups()) yield { group, silent: listing.regionsFailed.length };
  };
  return mapOrdered(groups(), TOMBSTONES_AT_A_TIME, async ({ group, silent }) => {
    return { group, isLive: await isLive(group, silent, context, how) };
  });
}

async function* living(judged: AsyncIterable<JudgedGroup>): AsyncGenerator<KeyGroup> {
  for await (const { group, isLive: isThere } of judged) if (isThere) yield group;
}

/** Whether a majority has the object, of which `silent` regions have listed nothing because they do not answer. */
async function isLive(group: KeyGroup, silent: number, context: WriteContext, how: ReadHow): Promise<boolean> {
  const needed = majorityOf(context.stores);
  if (context.stores.length - silent - group.manifests.length >= needed) return false;
  const etag = majorityEtag(group, context);
  const same = etag === undefined ? [] : group.manifests.filter((manifest) => manifest.etag === etag);
  // Lengths count as ETags do: by what a majority lists.
  if (same.filter((manifest) => !mayBeTombstone(manifest)).length >= needed) return true;
  if (same.filter((manifest) => mustBeTombstone(group.key, manifest)).length >= needed) return false;
  const listed = await majorityRecord(group, context);
  if (listed) return !isTombstone(listed);
  try {
    const { record } = await readRecord(group.key, context, how);
    return record !== undefined && !isTombstone(record);
  } catch (cause) {
    context.signal.throwIfAborted();
    const error = toAgaroseError(cause);
    const unusable = (error.details["unusable"] ?? []) as readonly string[];
    // An unusable object is listed, so that somebody sees it.
    if (unusable.length > 0 || error.code.startsWith("MANIFEST_")) return true;
    throw error;
  }
}

/**
 * The groups of a listing, without those whose tombstone every region has that answers. A removal that was killed left
 * some regions without it, and their readers see the object.
 */
function removableGroups(listing: Groups, context: RegionParts): AsyncGenerator<KeyGroup> {
  return living(judgedBy(listing, isGoneEverywhere, context));
}

/** Whether `removableGroups` leaves a group out. */
export async function isRemoved(group: KeyGroup, context: RegionParts): Promise<boolean> {
  if (!group.manifests.some(mayBeTombstone)) return false;
  return haveOneTombstone(group, context) || isGoneEverywhere(await checkManifests(group.key, context));
}

/** Whether all regions list one tombstone under the key. */
function haveOneTombstone({ key, manifests }: KeyGroup, { stores }: RegionParts): boolean {
  const etag = manifests[0]?.etag;
  if (etag === undefined || manifests.length < stores.length) return false;
  return manifests.every((manifest) => manifest.etag === etag && mustBeTombstone(key, manifest));
}

function isGoneEverywhere({ newest, verdicts }: CheckedManifests): boolean {
  if (newest === undefined || !isTombstone(newest)) return false;
  return verdicts.every(({ state }) => state === "sound" || state === "unreachable");
}

function judgedBy(
  listing: Groups,
  leavesOut: (checked: CheckedManifests) => boolean,
  context: RegionParts,
): AsyncGenerator<JudgedGroup> {
  return mapOrdered(listing.groups(), TOMBSTONES_AT_A_TIME, async (group) => {
    if (!group.manifests.some(mayBeTombstone)) return { group, isLive: true };
    if (haveOneTombstone(group, context)) return { group, isLive: false };
    return { group, isLive: !leavesOut(await checkManifests(group.key, context)) };
  });
}

/** Below it, looking at each key is as quick. */
const KEYS_MIN = 10;
/** So many others may be listed for each key. A page of a listing has a thousand. */
const LISTED_PER_KEY = 100;

/** The state of keys by listings, as it was a moment ago. */
interface ListedKeys {
  /** Nothing was ever stored under these: a majority of the regions does not list them. */
  readonly absent: ReadonlySet<string>;
  /** The ETag of the manifest that all regions list. */
  readonly etags: ReadonlyMap<string, string>;
}

/**
 * The state of `keys` by one request for a thousand of them, in place of one for each. It omits those that it does not
 * know: all keys when too many regions fail, and the last ones when the listing is long.
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
  // Half of a surrogate pair cannot be encoded.
  return commonStart(first, last).replace(/[\ud800-\udbff]$/, "");
}
