/**
 * Money beside milliseconds in one objective: an exchange rate says what an hour of readers' waiting is worth, and
 * every price counts as the milliseconds that it would buy. Pure.
 */
import type { ObjectShape } from "./object-shape.ts";

/** Prices in US dollars. */
export interface UsdPrices {
  /** The price of an hour that readers wait, above 0. */
  readonly waitingPerHour: number;
  /** A million writes to the cache. */
  readonly writePerMillion: number;
  /** A GB in the cache for a month. */
  readonly storagePerGbMonth: number;
  /** A GB read from each region, by name; others are free. */
  readonly egressPerGb: ReadonlyMap<string, number>;
}

/** The same prices as milliseconds of a reader's waiting. */
export interface MsPrices {
  /** By region: a byte that a read gets from it. */
  readonly egressPerByte: ReadonlyMap<string, number>;
  /** A write to the cache: one stripe. */
  readonly write: number;
  /** A byte in the cache for a second. */
  readonly storagePerByteSecond: number;
}

const MS_PER_HOUR = 3_600_000;
const GB = 1e9;
const SECONDS_PER_MONTH = 30 * 86_400;

/** Returns the prices as milliseconds. */
export function pricesInMs({ waitingPerHour, writePerMillion, storagePerGbMonth, egressPerGb }: UsdPrices): MsPrices {
  const msPerUsd = MS_PER_HOUR / waitingPerHour;
  const charged = [...egressPerGb].filter(([, usd]) => usd > 0);
  return {
    egressPerByte: new Map(charged.map(([region, usd]) => [region, (usd / GB) * msPerUsd])),
    write: (writePerMillion / 1e6) * msPerUsd,
    storagePerByteSecond: (storagePerGbMonth / GB / SECONDS_PER_MONTH) * msPerUsd,
  };
}

/**
 * The cost of one more cached chunk of an object: the writes of its stripes, and the egress of what the
 * fill reads. A new row of the code is computed from k chunks, which come from the cheapest regions; a copy reads one.
 */
export function fillMs(
  { placement, k, stripes, chunkBytes }: ObjectShape,
  { write, egressPerByte }: MsPrices,
  isFunctional: boolean,
): number {
  const perByte = placement.map((region) => egressPerByte.get(region) ?? 0).toSorted((a, b) => a - b);
  const sum = (of: readonly number[]): number => of.reduce((total, price) => total + price, 0);
  const read = isFunctional ? sum(perByte.slice(0, k)) : sum(perByte) / Math.max(1, perByte.length);
  return stripes * write + chunkBytes * read;
}
