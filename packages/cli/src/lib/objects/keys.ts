/**
 * The keys that the buckets hold: the manifests of all regions that answer, merged.
 */
import { isTombstone, parseKey, AgaroseError, type Clock } from "@agarose/core";
import type { CommandContext } from "../context.ts";
import { logLine } from "../output.ts";
import { keyGroups, type KeyGroup, type Kind } from "../walk/key-groups.ts";
import { mapOrdered } from "../walk/ordered-pool.ts";
import type { Breaker } from "./commit/ask-regions.ts";
import { majorityOf } from "./commit/write-context.ts";
import { checkManifests } from "./verify-object.ts";

/** A tombstone is shorter than this and twice its name; a manifest is longer, but for some of format 1. */
export const LISTED_TOMBSTONE_BYTES_MAX = 400;
const TOMBSTONES_AT_A_TIME = 16;

type CheckedManifests = Awaited<ReturnType<typeof checkManifests>>;
type ListingContext = Pick<CommandContext, "stores" | "signal" | "trust"> & {
  readonly breaker?: Breaker;
  /** Timers of deadlines. Default: the system's. */
  readonly clock?: Clock;
};

/** A region that could not be listed, and why. */
export interface FailedRegion {
  readonly region: string;
  readonly problem: string;
}

/** Options of `KeyListing`. */
export interface KeyListingOptions {
  /** What to list beside manifests. */
  readonly kinds?: readonly Kind[];
  /** The key after which to begin. */
  readonly after?: string | undefined;
}

/** The keys that have a manifest or a tombstone in a region that answers, in constant memory. */
export class KeyListing {
  /** Filled while the groups are read. */
  readonly regionsFailed: FailedRegion[] = [];
  readonly #prefix: string;
  readonly #context: ListingContext;
  readonly #options: KeyListingOptions;

  constructor(prefix: string, context: ListingContext, options: KeyListingOptions = {}) {
    this.#prefix = prefix;
    this.#context = context;
    this.#options = options;
  }

  /** In order of their names. Rejects with the error of the first region when none can be listed. */
  async *groups(): AsyncGenerator<KeyGroup> {
    const { stores, signal, breaker, clock } = this.#context;
    const { kinds = [], after } = this.#options;
    const errors: AgaroseError[] = [];
    const listing = keyGroups(stores, this.#prefix, signal, {
      kinds: ["manifests", ...kinds],
      ...(after !== undefined && { after }),
      ...(clock && { clock }),
      onFailure: ({ region: { name } }, error) => {
        errors.push(error);
        breaker?.open(name);
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

  /** Warns about the regions that did not answer, and when keys may be missing: by default on stderr. */
  warn(log: (line: string) => void = logLine): void {
    for (const { region, problem } of this.regionsFailed) log(`warning: ${region} did not answer: ${problem}`);
    if (!this.complete) log("warning: too few regions answered: keys may be missing from this list");
  }
}

/** The keys given. Throws USAGE beside a prefix, KEY_INVALID or KEY_TOO_LONG. */
export function givenKeys(keys: readonly string[], prefix: string | undefined): readonly string[] {
  if (keys.length > 0 && prefix !== undefined) throw new AgaroseError("USAGE", "give either keys or --prefix");
  return keys.map(parseKey);
}

/** All keys below `prefix` of which a region may still show an object. It warns about regions that fail. */
export async function removableKeys(prefix: string, context: ListingContext): Promise<string[]> {
  const listing = new KeyListing(prefix, context);
  const keys: string[] = [];
  for await (const { key } of removableGroups(listing, context)) keys.push(key);
  listing.warn();
  return keys;
}

type Groups = Pick<KeyListing, "groups">;

/** The groups of a listing, without those of removed objects. */
export function liveGroups(listing: Groups, context: ListingContext): AsyncGenerator<KeyGroup> {
  return groupsBut(listing, ({ newest }) => newest !== undefined && isTombstone(newest), context);
}

/**
 * The groups of a listing, without those whose tombstone every region has that answers. A removal that was killed left
 * some regions without it, and their readers see the object.
 */
export function removableGroups(listing: Groups, context: ListingContext): AsyncGenerator<KeyGroup> {
  return groupsBut(listing, isGoneEverywhere, context);
}

/** Whether `removableGroups` leaves a group out. */
export async function isRemoved(group: KeyGroup, context: ListingContext): Promise<boolean> {
  return isSuspect(group) && isGoneEverywhere(await checkManifests(group.key, context));
}

function isGoneEverywhere({ newest, verdicts }: CheckedManifests): boolean {
  if (newest === undefined || !isTombstone(newest)) return false;
  return verdicts.every(({ state }) => state === "sound" || state === "unreachable");
}

async function* groupsBut(
  listing: Groups,
  leavesOut: (checked: CheckedManifests) => boolean,
  context: ListingContext,
): AsyncGenerator<KeyGroup> {
  const judged = mapOrdered(listing.groups(), TOMBSTONES_AT_A_TIME, async (group) => {
    return { group, isLeftOut: isSuspect(group) && leavesOut(await checkManifests(group.key, context)) };
  });
  for await (const { group, isLeftOut } of judged) if (!isLeftOut) yield group;
}

/** Whether one of the manifests is short enough for a tombstone. */
function isSuspect({ manifests }: KeyGroup): boolean {
  return manifests.some(({ bytes, name }) => bytes <= LISTED_TOMBSTONE_BYTES_MAX + 2 * name.length);
}
