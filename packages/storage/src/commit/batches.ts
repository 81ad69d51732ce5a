/**
 * Batches: one claim to a generation of each of many keys, in place of a claim for each (docs/reference/format.md,
 * "Batches"). It is one object in each region, so that many keys are claimed by a few requests.
 *
 * The name of a batch is its writer's alone, so no condition keeps two of them apart. A writer stores its batch in a
 * majority, and then looks for those of others there: of two that claim one generation of a key, the later one sees the
 * other. It leaves such a key to its own claim. A batch takes generations that other writers never take.
 */
import { manifestName } from "@agarose/core/format";
import { AgaroseError } from "@agarose/core";
import { recordText, putRecord } from "../buckets/small-record.ts";
import type { ListedObject, Store } from "../buckets/store.ts";
import { askRegions, type Outcome } from "../regions/ask-regions.ts";
import type { Survey } from "../regions/region-survey.ts";
import { batchAfter } from "./generations.ts";
import { FRESH_MS, instantOf, isPast, LEASE_MS, type HeldClaim, type Lease } from "./lease.ts";
import { BATCH_PREFIX, commonStart } from "./names.ts";
import { majorityOf, type WriteContext } from "./write-context.ts";

/** A batch has fewer keys than a page of a listing, and they are stored while it is fresh. */
export const BATCH_KEYS_MAX = 128;
const BATCH_BYTES_MAX = 1024 * 1024;
/** A garbage collector removes old ones, so a region that lists more makes them up. */
const BATCHES_MAX = 1_000;
/** So many names of other keys may lie between those of a batch. */
const NAMES_MAX = 10_000;
/** Nothing is signed. A generation that is further ahead is no writer's. */
const AHEAD_MAX = 1_000_000;

/** A key to claim. */
export interface BatchKey {
  readonly key: string;
  /** Of the manifest that all regions listed shortly before. Without one, none listed it. */
  readonly etag?: string | undefined;
  /** The content of that manifest. */
  readonly survey: Survey;
}

/** A writer's part of its batch, which is claimed once one of its keys is to be written. */
export interface BatchClaim extends Pick<BatchKey, "survey"> {
  /** The right to write the key, once. Undefined where it needs its own claim. */
  readonly take: () => Promise<BatchLease | undefined>;
}

/** A batch's entry of a key. */
export interface BatchEntry {
  readonly generation: number;
  readonly upload: string;
}

/** A batch in one region. */
export interface ListedBatch extends ListedObject {
  readonly store: Store;
  readonly entries: ReadonlyMap<string, BatchEntry>;
}

/** The claim of a writer: its own, or its part of a batch. */
export type Ownership = Pick<Lease, "generation" | "isExpired" | "isFresh" | "refresh" | "withdraw" | "end">;

/** The right to write one generation of a key once, by a batch. */
export class BatchLease implements Ownership, BatchEntry {
  readonly generation: number;
  readonly upload: string;
  /** Whether its writer has begun to write the manifest, and not ended yet with a majority that has it. */
  isOpen = false;
  readonly #start: HeldClaim["start"];
  readonly #context: WriteContext;

  constructor({ generation, upload }: BatchEntry, start: HeldClaim["start"], context: WriteContext) {
    this.generation = generation;
    this.upload = upload;
    this.#start = start;
    this.#context = context;
  }

  get isExpired(): boolean {
    return isPast(this.#start, LEASE_MS, this.#context);
  }

  get isFresh(): boolean {
    return !isPast(this.#start, FRESH_MS, this.#context);
  }

  /** A batch is stored once only. Who takes longer claims again. */
  async refresh(): Promise<boolean> {
    return this.isFresh;
  }

  async withdraw(): Promise<void> {}

  end(): void {}
}

/** A batch that its writer holds. */
export class Batch {
  readonly #leases: ReadonlyMap<string, BatchLease>;
  readonly #free: Map<string, BatchLease>;
  readonly #name: string;
  readonly #context: WriteContext;

  constructor(name: string, leases: ReadonlyMap<string, BatchLease>, context: WriteContext) {
    this.#name = name;
    this.#leases = leases;
    this.#free = new Map(leases);
    this.#context = context;
  }

  /** The right to write a key, once. Undefined where another writer may have it. */
  take(key: string): BatchLease | undefined {
    const lease = this.#free.get(key);
    this.#free.delete(key);
    return lease;
  }

  /**
   * Removes the batch, once nothing is written by it any more. Where a request that is late may still write something,
   * the batch stays, for a garbage collector: then its generation is still taken. Does not reject.
   */
  async end(): Promise<void> {
    if ([...this.#leases.values()].some(({ isOpen }) => isOpen)) return;
    await removeBatch(this.#name, this.#context);
  }
}

async function removeBatch(name: string, context: WriteContext): Promise<void> {
  const { signal } = new AbortController();
  const remove = (store: Store, ended: AbortSignal): Promise<unknown> => store.remove([name], ended);
  await askRegions(context.stores, remove, { enough: Math.ceil(context.stores.length / 2) }, { ...context, signal });
}

/**
 * Claims a generation of each key that is as it was listed. Its caller ends the batch. Undefined where too few regions
 * answer: then each key needs its own claim.
 */
export async function claimBatch(keys: readonly BatchKey[], context: WriteContext): Promise<Batch | undefined> {
  const needed = majorityOf(context.stores);
  const isGood = (): boolean => true;
  const before = valuesOf(await askRegions(context.stores, batchesIn, { enough: needed, isGood }, context));
  if (before.length < needed) return undefined;
  const entries = new Map(keys.map(({ key, survey }) => [key, entryOf(key, survey, before.flat(), context)]));
  const name = `${BATCH_PREFIX}${context.newUpload()}`;
  const start = instantOf(context);
  const holders = await storeBatch(name, entries, context);
  const isOurs = await unclaimed(name, entries, holders, context);
  const isUnchanged = isOurs && (await unchanged(keys, context));
  if (!isOurs || !isUnchanged) {
    await removeBatch(name, context);
    return undefined;
  }
  const own = [...entries].filter(([key, entry]) => isOurs(key, entry) && isUnchanged(key));
  const leases = own.map(([key, entry]) => [key, new BatchLease(entry, start, context)] as const);
  return new Batch(name, new Map(leases), context);
}

/** Batches of writers that died stay, so their generations are passed over. */
function entryOf(
  key: string,
  { generation }: Survey,
  others: readonly ListedBatch[],
  { newUpload }: WriteContext,
): BatchEntry {
  const claimed = others.flatMap(({ entries }) => entries.get(key)?.generation ?? []);
  const passed = claimed.filter((other) => other < generation + AHEAD_MAX);
  return { generation: batchAfter(Math.max(generation, ...passed)), upload: newUpload() };
}

/** Returns the regions that have it. An interruption waits for the answers, because it has to take it back. */
async function storeBatch(
  name: string,
  entries: ReadonlyMap<string, BatchEntry>,
  context: WriteContext,
): Promise<Store[]> {
  const claims = [...entries].map(([key, { generation, upload }]) => [key, generation, upload]);
  const put = (store: Store, signal: AbortSignal): Promise<unknown> =>
    putRecord(store, name, JSON.stringify({ claims }), { signal });
  const patience = { enough: majorityOf(context.stores), isGood: () => true };
  const { signal } = new AbortController();
  const outcomes = await askRegions(context.stores, put, patience, { ...context, signal });
  return outcomes.filter(({ error }) => error === undefined).map(({ store }) => store);
}

/**
 * Whether a key is claimed by no other batch, by a look that began after ours was stored. Undefined when too few of the
 * regions that took ours list it: another batch may be missing from such a list, too.
 */
async function unclaimed(
  name: string,
  own: ReadonlyMap<string, BatchEntry>,
  holders: readonly Store[],
  context: WriteContext,
): Promise<((key: string, entry: BatchEntry) => boolean) | undefined> {
  const needed = majorityOf(context.stores);
  if (holders.length < needed) return undefined;
  const known = (store: Store, signal: AbortSignal) => batchesIn(store, signal, { name, entries: own });
  const listings = valuesOf(await askRegions(holders, known, { enough: needed }, context));
  const sound = listings.filter((batches) => batches.some((batch) => batch.name === name));
  if (sound.length < needed) return undefined;
  const others = sound.flat().filter((batch) => batch.name !== name);
  return (key, { generation }) => others.every(({ entries }) => entries.get(key)?.generation !== generation);
}

/**
 * Whether each region of a majority lists of a key what was seen of it. A batch goes once its manifests are in a
 * majority, so one that was gone before the look at the batches shows here. Undefined where no majority answers, or too
 * much else is there.
 */
async function unchanged(
  keys: readonly BatchKey[],
  context: WriteContext,
): Promise<((key: string) => boolean) | undefined> {
  const needed = majorityOf(context.stores);
  const names = keys.map(({ key }) => manifestName(key)).toSorted();
  const [first, last] = [names[0]!, names.at(-1)!];
  const list = async (store: Store, signal: AbortSignal): Promise<ReadonlyMap<string, string>> => {
    const found = new Map<string, string>();
    let count = 0;
    // The name before the first one is its own without the end.
    for await (const { name, etag = "" } of store.list(commonStart(first, last), signal, first.slice(0, -1))) {
      if (name > last) break;
      if (++count > NAMES_MAX)
        throw new AgaroseError("SOURCE_FAILED", `more than ${NAMES_MAX} names among ${names.length}`);
      found.set(name, etag);
    }
    return found;
  };
  const listings = valuesOf(await askRegions(context.stores, list, { enough: needed, isGood: () => true }, context));
  if (listings.length < needed) return undefined;
  const etags = new Map(keys.map(({ key, etag }) => [key, etag]));
  return (key) => listings.every((found) => found.get(manifestName(key)) === etags.get(key));
}

function valuesOf<T>(outcomes: readonly Outcome<T>[]): T[] {
  return outcomes.flatMap((outcome) => (outcome.error === undefined ? [outcome.value] : []));
}

/** The contents of earlier read batches. A batch does not change. */
const readBefore = new WeakMap<Store, ReadonlyMap<string, ListedBatch["entries"]>>();

/** The batches in a region. Rejects when the region does not say. */
export async function batchesIn(
  store: Store,
  signal: AbortSignal,
  own?: Pick<ListedBatch, "name" | "entries">,
): Promise<ListedBatch[]> {
  const listed: ListedObject[] = [];
  for await (const object of store.list(BATCH_PREFIX, signal)) {
    listed.push(object);
    if (listed.length <= BATCHES_MAX) continue;
    const region = store.region.name;
    const message = `region ${region} lists more than ${BATCHES_MAX} batches: delete garbage with \`agarose gc\``;
    throw new AgaroseError("SOURCE_FAILED", message, { region, limit: BATCHES_MAX });
  }
  const before = readBefore.get(store);
  const batches: ListedBatch[] = [];
  for (const object of listed) {
    const { name } = object;
    const known = name === own?.name ? own.entries : before?.get(name);
    batches.push({ ...object, store, entries: known ?? (await readBatch(store, name, signal)) });
  }
  readBefore.set(store, new Map(batches.map(({ name, entries }) => [name, entries])));
  return batches;
}

/** Nothing where it is gone, or where it is none. */
async function readBatch(store: Store, name: string, signal: AbortSignal): Promise<ListedBatch["entries"]> {
  const text = await recordText(store, name, "batch", signal, BATCH_BYTES_MAX);
  try {
    const { claims } = JSON.parse(text) as { readonly claims: readonly (readonly [string, number, string])[] };
    return new Map(claims.map(([key, generation, upload]) => [key, { generation, upload }]));
  } catch {
    return new Map();
  }
}
