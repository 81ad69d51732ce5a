/**
 * The clocks of the regions. What a region says of the time of its objects is compared with the region's own clock
 * only, because the clock of this machine may be wrong by days.
 */
import { AgaroseError } from "@agarose/core";
import { askRegions, Breaker } from "../regions/ask-regions.ts";
import { CLOCK_PREFIX } from "../commit/names.ts";
import type { WriteContext } from "../commit/write-context.ts";
import { boundedNames } from "./bounded-names.ts";
import type { Store } from "../buckets/store.ts";
import { putRecord } from "../buckets/small-record.ts";
import { allOf } from "./adaptive-pool.ts";

/** Milliseconds since an object was stored, by the clock of its region. */
export type AgeOf = (object: { readonly store: Store; readonly modifiedMs: number }) => number;

interface Reading {
  readonly store: Store;
  /** The region's clock, and this machine's at the same moment. */
  readonly regionMs: number;
  readonly localMs: number;
  /** Of the timer, when the region's clock had said it. */
  readonly readAtMs: number;
}

const SKEW_MS_MAX = 5 * 60_000;
/** A probe of this age is that of a run that was killed. */
const ABANDONED_MS = 3_600_000;

/**
 * Stores a small object in each region, reads its time from a listing, and removes it. The ages that the result gives
 * are never too high by more than the seconds that listings round to.
 *
 * @throws CLOCKS_DISAGREE when the clocks of the regions and of this machine differ by more than five minutes, and
 *   STORE_FAILED, SOURCE_FAILED or CREDENTIALS_REFUSED when a region does not answer.
 */
export async function readRegionClocks(context: WriteContext): Promise<AgeOf> {
  const { stores, clock } = context;
  const read = (store: Store, signal: AbortSignal): Promise<Reading> => readClock(store, { ...context, signal });
  const patience = { enough: stores.length };
  const outcomes = await askRegions(stores, read, patience, { ...context, breaker: new Breaker(clock) });
  const readings = outcomes.map(({ value, error }) => {
    if (error) throw error;
    return value;
  });
  refuseSkew(readings);
  const byStore = new Map(readings.map((reading) => [reading.store, reading]));
  return ({ store, modifiedMs }) => {
    const { regionMs, readAtMs } = byStore.get(store)!;
    return regionMs + (clock.now() - readAtMs) - modifiedMs;
  };
}

/**
 * Ages by the clock that the last answer of a region had in its `Date`. Writes nothing, and needs no region that does
 * not answer. A region without that header counts as one whose clock is this machine's.
 */
export function answeredClocks({ nowMs }: Pick<WriteContext, "nowMs">): AgeOf {
  return ({ store, modifiedMs }) => nowMs() + (store.clockAheadMs ?? 0) - modifiedMs;
}

/** The age that `needed` regions agree on at least; 0 where fewer have the object. */
export function ageOfMajority(agesMs: readonly number[], needed: number): number {
  return agesMs.toSorted((a, b) => b - a)[needed - 1] ?? 0;
}

async function readClock(store: Store, { nowMs, clock, newUpload, signal }: WriteContext): Promise<Reading> {
  const name = `${CLOCK_PREFIX}${newUpload()}`;
  const beforeMs = nowMs();
  await putRecord(store, name, "{}", { signal });
  const localMs = (beforeMs + nowMs()) / 2;
  const readAtMs = clock.now();
  const probes = await allOf(boundedNames(store, CLOCK_PREFIX, signal));
  const regionMs = probes.find((probe) => probe.name === name)?.modifiedMs;
  const isOver = (probe: (typeof probes)[number]): boolean =>
    probe.name === name || (regionMs !== undefined && regionMs - probe.modifiedMs > ABANDONED_MS);
  await store.remove(probes.filter(isOver).map((probe) => probe.name));
  if (regionMs !== undefined) return { store, regionMs, localMs, readAtMs };
  const message = `region ${store.region.name} does not list ${name}, which was just stored: nothing was deleted; retry`;
  throw new AgaroseError("SOURCE_FAILED", message, { region: store.region.name, name });
}

/** Throws CLOCKS_DISAGREE when two clocks differ by too much. */
function refuseSkew(readings: readonly Reading[]): void {
  // Times of different moments are compared by how far each is ahead of this machine.
  const clocks = readings.map(({ store, regionMs, localMs }) => ({
    owner: `region ${store.region.name}`,
    aheadMs: regionMs - localMs,
  }));
  const ordered = [...clocks, { owner: "this machine", aheadMs: 0 }].toSorted((a, b) => a.aheadMs - b.aheadMs);
  const [first, last] = [ordered[0]!, ordered.at(-1)!];
  const skewMs = Math.round(last.aheadMs - first.aheadMs);
  if (skewMs <= SKEW_MS_MAX) return;
  throw new AgaroseError(
    "CLOCKS_DISAGREE",
    `the clock of ${last.owner} is ${Math.round(skewMs / 1000)} s ahead of that of ${first.owner}, at most ` +
      `${SKEW_MS_MAX / 1000} s are allowed: nothing was marked or deleted; set the clock that is wrong`,
    { ahead: last.owner, behind: first.owner, skewMs, skewMsMax: SKEW_MS_MAX },
  );
}
