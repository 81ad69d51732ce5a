/**
 * The history of a key under `keep`: a copy of each manifest that another version replaces
 * (docs/reference/format.md, "History"). While a copy is young enough, the garbage collector leaves its chunks.
 */
import { AgaroseError } from "@agarose/core";
import { isTombstone, type ManifestRecord } from "@agarose/core/format";
import type { Config } from "../config/config.ts";
import type { ListedObject, Store } from "../buckets/store.ts";
import { boundedNames } from "../listing/bounded-names.ts";
import { askRegions, type Outcome } from "../regions/ask-regions.ts";
import { historyName, historyPrefix } from "./names.ts";
import type { RegionManifest } from "../regions/region-survey.ts";
import { majorityOf, type RegionParts, type WriteContext } from "./write-context.ts";
import { putRecord } from "../buckets/small-record.ts";

/** A copy in one region, as its name says. */
export interface HistoryCopy extends ListedObject {
  readonly store: Store;
  /** Of the version that it keeps. */
  readonly upload: string;
}

/** For how long versions of a key stay after they were replaced: 0 without a rule, else that of the longest prefix. */
export function keepMsOf(key: string, { keep }: Pick<Config, "keep">): number {
  return ruleOf(key, keep)?.time ?? 0;
}

/** The rule of the longest prefix that a key has. */
export function ruleOf<R extends { readonly prefix: string }>(key: string, rules: readonly R[]): R | undefined {
  const own = rules.filter(({ prefix }) => key.startsWith(prefix));
  return own.toSorted((a, b) => b.prefix.length - a.prefix.length)[0];
}

/**
 * Makes the function that a writer of `record` calls before it replaces what a region holds. It resolves once a
 * majority has a copy of that, and rejects with STORE_FAILED when none takes it. Undefined: there is nothing to keep.
 */
export function keeperFor(
  record: ManifestRecord,
  context: WriteContext,
): (replaced: RegionManifest) => Promise<void> | undefined {
  const { key, generation } = record;
  const upload = isTombstone(record) ? undefined : record.upload;
  const isKept = keepMsOf(key, context.config) > 0;
  // Regions mostly hold the same, which is copied once.
  const copies = new Map<string, Promise<void>>();
  return ({ record: old, bytes }) => {
    if (!isKept || !old || isTombstone(old) || old.upload === upload) return undefined;
    const copy = copies.get(old.upload) ?? storeCopy(historyName(key, old.upload, generation), bytes!, key, context);
    copies.set(old.upload, copy);
    return copy;
  };
}

/**
 * Without a condition: a generation belongs to one writer, so no other one has this name, and what is there already is
 * the same version.
 */
async function storeCopy(name: string, bytes: Uint8Array, key: string, context: WriteContext): Promise<void> {
  const put = (store: Store, signal: AbortSignal): Promise<unknown> => putRecord(store, name, bytes, { signal });
  const needed = majorityOf(context.stores);
  const outcomes = await askRegions(context.stores, put, { enough: needed }, context);
  const failed = outcomes.flatMap(({ error }) => error ?? []);
  const stored = outcomes.length - failed.length;
  if (stored >= needed) return;
  throw new AgaroseError(
    "STORE_FAILED",
    `${stored} of ${outcomes.length} regions accepted a copy of the replaced version of ${JSON.stringify(key)}, ` +
      `${needed} are needed: try again once they answer. First error: ${failed[0]!.message}`,
    { key, stored, needed },
    failed[0],
  );
}

/** The copies of a key in the regions that answer; `enough` of them must. Throws what too many regions say. */
export async function listHistory(key: string, enough: number, context: RegionParts): Promise<HistoryCopy[]> {
  const outcomes = await askHistory(key, enough, context);
  const failed = outcomes.flatMap(({ error }) => error ?? []);
  if (outcomes.length - failed.length < enough) throw failed[0]!;
  return outcomes.flatMap(({ value = [] }) => value);
}

/** The copies of a key in each region, or why a region did not list them; `enough` answers end the patience. */
export function askHistory(key: string, enough: number, context: RegionParts): Promise<Outcome<HistoryCopy[]>[]> {
  const prefix = historyPrefix(key);
  const list = async (store: Store, signal: AbortSignal): Promise<HistoryCopy[]> => {
    const copies: HistoryCopy[] = [];
    for await (const listed of boundedNames(store, prefix, signal)) {
      copies.push({ ...listed, store, upload: uploadOf(listed.name.slice(prefix.length)) });
    }
    return copies;
  };
  return askRegions(context.stores, list, { enough }, context);
}

/** The upload that the name of a copy names; `suffix` is what follows the name of the key. */
export function uploadOf(suffix: string): string {
  return suffix.slice(0, suffix.indexOf("."));
}
