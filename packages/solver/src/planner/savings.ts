/**
 * * The present savings of each idea of the papers: the expected time of a read, and of the same read without that
 * idea. Also what reads pay for egress, and would pay without the cache. These are estimates by the latencies that the
 * PoP measures; no read is made without an idea to compare. Pure.
 */
import type { PeerView } from "../cooperation/peer-view.ts";
import { cachingOptions, readMs, type ReadConditions } from "../options/caching-option.ts";
import { isFunctional, recoveredChunks, type RegionEstimate } from "../options/sources.ts";
import { nearestRegions, sourcesOf } from "./cache-options.ts";
import type { ObjectShape } from "./object-shape.ts";

/** One object, how often clients request it here, and the chunks of it that are cached here. */
export interface ServedObject {
  readonly object: ObjectShape;
  /** Requests per period. */
  readonly popularity: number;
  readonly chunks: readonly number[];
}

/** Inputs of the expected reads. */
export interface ServedView extends ReadConditions {
  readonly regions: readonly RegionEstimate[];
  readonly peers: PeerView;
  /** The price of a GB from each region in US dollars; others are free. Default: all are. */
  readonly egressUsdPerGb?: ReadonlyMap<string, number>;
}

/** Means over the requests of a period, in milliseconds or US dollars a read. */
export interface Savings {
  /** Requests per period that the means are taken over. */
  readonly requests: number;
  readonly readMs: number;
  /** By idea: how much longer a read would take without it. Below 0 where it costs time. */
  readonly savedMs: {
    /** Chunks in this PoP's cache (Agar; Liu et al.). */
    readonly caching: number;
    /** Requests beyond k (EC-Cache, section 4.3). */
    readonly lateBinding: number;
    /** Rows of the code that no region has, against as many copies (Sprout, section III). */
    readonly functional: number;
    /** Chunks in peers' caches (Agar, section VI; C2P). */
    readonly cooperation: number;
  };
  /** The egress costs of reads, and the additional ones without the chunks in this PoP's cache. */
  readonly egressUsd: { readonly paid: number; readonly saved: number };
  /** Cached rows of the code that no region has. */
  readonly functionalChunks: number;
  /** Cached data chunks whose region is down: reads use them instead of decoding (Liu et al., V-B). */
  readonly recovered: number;
  /**
   * How much longer the reads of the period that ended took, on their mean, than with the contents that would have been
   * best for them: what only a policy that knows the future has. Absent where nothing was requested.
   */
  readonly regretMs?: number;
  /** How far the busiest region is above the mean, if every read asks its best k + delta (EC-Cache, equation (1)). */
  readonly imbalancePercent: number;
}

/** Objects that are looked at: the most popular ones. */
const OBJECTS_MAX = 500;

/** Returns the estimates, or undefined where nothing is requested. */
export function estimateSavings(objects: readonly ServedObject[], view: ServedView): Savings | undefined {
  const popular = objects
    .filter(({ popularity }) => popularity > 0)
    .toSorted((a, b) => b.popularity - a.popularity)
    .slice(0, OBJECTS_MAX);
  const requests = popular.reduce((sum, { popularity }) => sum + popularity, 0);
  if (requests === 0) return undefined;
  const load = new Map(view.regions.map(({ name }) => [name, 0]));
  const egress = { paid: 0, saved: 0 };
  const sums = { read: 0, caching: 0, lateBinding: 0, functional: 0, cooperation: 0, recovered: 0, rows: 0 };
  for (const served of popular) {
    const times = timesOf(served, view);
    const share = served.popularity / requests;
    sums.read += share * times.now;
    sums.caching += share * (times.withoutCaching - times.now);
    sums.lateBinding += share * (times.withoutLateBinding - times.now);
    sums.functional += share * (times.withoutFunctional - times.now);
    sums.cooperation += share * (times.withoutCooperation - times.now);
    sums.rows += served.chunks.filter((chunk) => isFunctional(served.object, chunk)).length;
    sums.recovered += recoveredChunks(served.object, served.chunks, view.regions).length;
    const asked = nearestRegions(served.object, served.chunks, view);
    for (const region of asked) load.set(region, (load.get(region) ?? 0) + served.popularity);
    const paid = egressUsdOf(asked, served.object, view);
    egress.paid += share * paid;
    egress.saved += share * (egressUsdOf(nearestRegions(served.object, [], view), served.object, view) - paid);
  }
  const { read, recovered, rows, ...savedMs } = sums;
  return {
    requests,
    readMs: read,
    savedMs,
    egressUsd: egress,
    functionalChunks: rows,
    recovered,
    imbalancePercent: imbalancePercent([...load.values()]),
  };
}

/**
 * EC-Cache, equation (1): how far the largest load is above `ideal`, in percent; 0 without load.
 *
 * @param ideal the load of each if the needed requests were spread evenly. Default: the mean, which is higher where
 *   there are extra requests.
 */
export function imbalancePercent(
  loads: readonly number[],
  ideal = loads.reduce((sum, load) => sum + load, 0) / loads.length,
): number {
  return ideal > 0 ? (100 * (Math.max(...loads) - ideal)) / ideal : 0;
}

/** The price of a chunk from each of these regions. */
function egressUsdOf(asked: readonly string[], { chunkBytes }: ObjectShape, { egressUsdPerGb }: ServedView): number {
  return asked.reduce((sum, region) => sum + ((egressUsdPerGb?.get(region) ?? 0) * chunkBytes) / 1e9, 0);
}

function timesOf({ object, chunks }: ServedObject, view: ServedView) {
  const { regions, peers } = view;
  const sources = sourcesOf(object, regions, peers);
  const alone = sourcesOf(object, regions);
  const time = (from: typeof sources, cached: readonly number[], delta = view.delta): number =>
    readMs(from, cached, object, { ...view, delta });
  const rows = chunks.filter((chunk) => isFunctional(object, chunk)).length;
  const { k, m } = object;
  const copies =
    rows === 0
      ? chunks
      : (cachingOptions({ ...view, k, m, chunkBytes: 1, sources, popularity: 1 })[chunks.length - 1]?.chunks ?? []);
  return {
    now: time(sources, chunks),
    withoutCaching: time(sources, []),
    withoutLateBinding: time(sources, chunks, 0),
    withoutFunctional: time(sources, copies),
    withoutCooperation: time(alone, chunks),
  };
}
