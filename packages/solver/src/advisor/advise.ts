/**
 * The advisor: which code, in which regions, with how much cache. It omits layouts that do not survive the
 * requested losses, rates the others by expected latency without cache, and simulates the best of them with caches.
 */
import * as v from "valibot";
import { checked, integer, number, refuse, type Immutable } from "../checked.ts";
import { SolverError } from "../errors.ts";
import { expectedReadMs } from "../options/latency.ts";
import { simulate } from "../simulator/simulate.ts";
import { parseScenario } from "../simulator/scenario/scenario.ts";
import { FAILURES_DEFAULT, lossesPerYear, nines, unavailability } from "./durability.ts";

const REGIONS_MAX = 10;

const requestShape = v.object({
  regions: v.pipe(
    v.array(
      v.object({
        name: v.string(),
        /** Failure domain above regions. Default: the region itself. */
        provider: v.optional(v.string()),
        /** Milliseconds from each PoP, by its name, to the first byte of a chunk. */
        latencyMs: v.record(v.string(), number(0)),
        /** Megabytes (10^6 bytes) per second of one transfer from here to any PoP. Default: unlimited. */
        bandwidthMBps: v.optional(number(1e-3)),
        /** Prices are in US dollars. */
        storagePerGbMonth: number(0),
        getPerMillion: number(0),
        egressPerGb: number(0),
      }),
    ),
    v.minLength(1),
    v.maxLength(REGIONS_MAX),
  ),
  pops: v.pipe(
    v.array(
      v.object({
        name: v.string(),
        /** Share of the audience in any unit. */
        weight: number(1e-6),
        /** Milliseconds to read what the cache holds of an object, transfer included. */
        cacheLatencyMs: number(0),
      }),
    ),
    v.minLength(1),
  ),
  data: v.object({
    objects: number(1),
    bytesPerObject: integer(1),
    readsPerMonth: number(0),
    /** Exponent of the Zipf popularity. Default 0.9. */
    zipf: v.optional(number(0)),
  }),
  /** How many whole regions, and how many whole providers, may fail without loss of data. */
  survive: v.object({ regions: number(0), providers: number(0) }),
  /** Codes to consider as [k, m]. Default: ten common ones. */
  codes: v.optional(
    v.array(
      v.pipe(
        v.tuple([v.number(), v.number()]),
        v.check(
          ([k, m]) => Number.isInteger(k) && Number.isInteger(m) && k >= 1 && m >= 0 && k + m <= 30,
          "must be [k, m], together at most 30",
        ),
      ),
    ),
  ),
  /** Cache sizes to consider per PoP, as shares of all data. Default: 0, 1%, 5% and 20%. */
  cacheShares: v.optional(v.array(number(0))),
  /** Relative spread of latencies (lognormal). Default 0.3. */
  sigma: v.optional(number(0)),
  /** How often regions, providers and chunks fail (`FailureModel`). Default: `FAILURES_DEFAULT` for what is omitted. */
  failures: v.optional(
    v.strictObject({
      regionDown: v.exactOptional(number(0, 1)),
      providerDown: v.exactOptional(number(0, 1)),
      chunkLossesPerYear: v.exactOptional(number(0)),
      regionLossesPerYear: v.exactOptional(number(0)),
      providerLossesPerYear: v.exactOptional(number(0)),
      repairDays: v.exactOptional(number(1e-6)),
    }),
  ),
});

/** The regions, the audience, the data, and what the layout must survive. */
export type AdviceRequest = Immutable<v.InferInput<typeof requestShape>>;

type AdvisedRegion = AdviceRequest["regions"][number];

/** One layout with one cache size, and what it gives and costs. */
export interface Advice {
  readonly k: number;
  readonly m: number;
  readonly regions: readonly string[];
  /** Cache per PoP, as a share of all data. */
  readonly cacheShare: number;
  readonly meanMs: number;
  readonly p99Ms: number;
  /** Stored bytes per byte of data. */
  readonly storageOverhead: number;
  readonly costPerMonth: number;
  /** Of the share of time in which an object can be read without caches: 0.999 is 3. At most 99. */
  readonly availabilityNines: number;
  /** Of the probability that an object is not lost within a year. At most 99. */
  readonly durabilityNines: number;
  /** Whether no other advice is both as fast and as cheap, and better in one of the two. */
  readonly isEfficient: boolean;
}

const CODES: readonly (readonly [number, number])[] = [
  [1, 1], [1, 2], [2, 1], [2, 2], [3, 2], [4, 2], [4, 3], [6, 3], [8, 4], [9, 3],
]; // prettier-ignore
/** Cache sizes that are considered unless the request says which. */
export const CACHE_SHARES = [0, 0.01, 0.05, 0.2];
/** Layouts that are simulated (`shortlist`). */
const SHORTLIST = 6;
const SIMULATED_OBJECTS = 400;
const SIMULATED_READS = 1500;
/** Workers KV list prices in US dollars. */
const KV = { read: 0.5e-6, write: 5e-6, gbMonth: 0.5 };

/**
 * Returns advice, fastest first. Throws SCENARIO_INVALID when the request is malformed, or no layout survives the
 * requested losses.
 */
export function advise(request: AdviceRequest): Advice[] {
  checkRequest(request);
  const layouts = layoutsOf(request);
  if (layouts.length === 0) {
    const message = "no code over these regions survives the requested losses: add regions or codes";
    throw new SolverError("SCENARIO_INVALID", message, { survive: request.survive });
  }
  const shares = request.cacheShares ?? CACHE_SHARES;
  const rated = shortlist(layouts, SHORTLIST).flatMap((layout) => shares.map((share) => rate(request, layout, share)));
  const isBeaten = (one: Rated, by: Rated): boolean =>
    by.meanMs <= one.meanMs &&
    by.costPerMonth <= one.costPerMonth &&
    (by.meanMs < one.meanMs || by.costPerMonth < one.costPerMonth);
  return rated
    .map((one) => ({ ...one, isEfficient: !rated.some((other) => isBeaten(one, other)) }))
    .toSorted((a, b) => a.meanMs - b.meanMs || a.costPerMonth - b.costPerMonth);
}

/** Advice before it is compared with the others. */
export type Rated = Omit<Advice, "isEfficient">;

/** A code over a set of regions, and what it gives before a cache is added. */
export interface Layout {
  readonly k: number;
  readonly m: number;
  readonly regions: readonly AdvisedRegion[];
  readonly uncachedMs: number;
  readonly storageCost: number;
}

/** Every code over every set of regions, chunks placed round-robin, that survives the requested losses. */
export function layoutsOf(request: AdviceRequest): Layout[] {
  const { regions, survive } = request;
  const layouts: Layout[] = [];
  for (let set = 1; set < 2 ** regions.length; set++) {
    const chosen = regions.filter((_, r) => set & (1 << r));
    for (const [k, m] of request.codes ?? CODES) {
      if (k + m < chosen.length || !survives(chosen, k, m, survive)) continue;
      layouts.push({
        k,
        m,
        regions: chosen,
        uncachedMs: uncachedMs(request, chosen, k, m),
        storageCost: storageCost(request, chosen, k, m),
      });
    }
  }
  return layouts;
}

/** Returns the `count` layouts of least latency without cache, and as many of least storage cost. */
export function shortlist(layouts: readonly Layout[], count: number): Layout[] {
  const byLatency = layouts.toSorted((a, b) => a.uncachedMs - b.uncachedMs);
  const byCost = layouts.toSorted((a, b) => a.storageCost - b.storageCost || a.uncachedMs - b.uncachedMs);
  return [...new Set([...byLatency.slice(0, count), ...byCost.slice(0, count)])];
}

function survives(regions: readonly AdvisedRegion[], k: number, m: number, survive: AdviceRequest["survive"]): boolean {
  const chunks = regions.map((_, r) => chunksIn(r, regions.length, k + m));
  const byProvider = new Map<string, number>();
  for (const [r, region] of regions.entries()) {
    const provider = region.provider ?? region.name;
    byProvider.set(provider, (byProvider.get(provider) ?? 0) + chunks[r]!);
  }
  const lost = (held: number[], count: number): number =>
    held
      .toSorted((a, b) => b - a)
      .slice(0, count)
      .reduce((sum, own) => sum + own, 0);
  return lost(chunks, survive.regions) <= m && lost([...byProvider.values()], survive.providers) <= m;
}

function chunksIn(region: number, regions: number, chunks: number): number {
  return Math.floor(chunks / regions) + (region < chunks % regions ? 1 : 0);
}

function uncachedMs(
  { pops, data, sigma = 0.3 }: AdviceRequest,
  regions: readonly AdvisedRegion[],
  k: number,
  m: number,
): number {
  let sum = 0;
  let weights = 0;
  for (const { name, weight } of pops) {
    const sources = Array.from({ length: k + m }, (_, c) => chunkMs(regions[c % regions.length]!, name, data, k))
      .toSorted((a, b) => a - b)
      .slice(0, k)
      .map((meanMs) => ({ meanMs, sdMs: meanMs * sigma }));
    sum += weight * expectedReadMs(sources, k);
    weights += weight;
  }
  return sum / weights;
}

/** Milliseconds of one chunk from a region: first byte and transfer. */
function chunkMs(
  { latencyMs, bandwidthMBps }: AdvisedRegion,
  pop: string,
  data: AdviceRequest["data"],
  k: number,
): number {
  const transferMs = bandwidthMBps === undefined ? 0 : data.bytesPerObject / k / (bandwidthMBps * 1000);
  return latencyMs[pop]! + transferMs;
}

function storageCost({ data }: AdviceRequest, regions: readonly AdvisedRegion[], k: number, m: number): number {
  const chunkGb = (data.objects * data.bytesPerObject) / k / 1e9;
  return regions.reduce(
    (sum, region, r) => sum + chunksIn(r, regions.length, k + m) * chunkGb * region.storagePerGbMonth,
    0,
  );
}

/**
 * Simulates one layout with one cache size; the audience's reads are scaled to the month. A cache that is `free` is
 * that of a CDN, which charges for neither reads nor bytes.
 */
export function rate(request: AdviceRequest, layout: Layout, cacheShare: number, cache: "kv" | "free" = "kv"): Rated {
  const { data, pops } = request;
  const { k, m, regions } = layout;
  const scenario = parseScenario({
    code: { k, m },
    // Popularity matters by rank: a few hundred objects represent all of them at the same share of cache.
    objects: { count: SIMULATED_OBJECTS, bytes: data.bytesPerObject },
    regions: regions.map((region) => region.name),
    pops: pops.map((pop) => ({
      name: pop.name,
      regionLatencyMs: Object.fromEntries(regions.map((region) => [region.name, chunkMs(region, pop.name, data, k)])),
      cacheLatencyMs: pop.cacheLatencyMs,
      capacityChunks: Math.round(cacheShare * SIMULATED_OBJECTS * k),
      demand: pop.weight,
    })),
    noise: { lognormalSigma: request.sigma ?? 0.3 },
    popularity: { type: "zipf", exponent: data.zipf ?? 0.9 },
    requests: { perSecond: 1, count: SIMULATED_READS },
    policies: [{ name: cacheShare > 0 ? "clairvoyant" : "backend" }],
  });
  const all = simulate(scenario).find((row) => row.pop === "all")!;
  const fetched = all.requestsPerRead - k * all.chunkHitRatio;
  const use = regionUse(request, layout);
  const price = (of: "getPerMillion" | "egressPerGb"): number =>
    regions.reduce((sum, region, r) => sum + use[r]! * region[of], 0);
  const gigabytes = (data.bytesPerObject / k / 1e9) * fetched * data.readsPerMonth;
  const cacheGb = (cacheShare * data.objects * data.bytesPerObject * pops.length) / 1e9;
  const cacheCost = cache === "free" ? 0 : data.readsPerMonth * all.hitRatio * KV.read + cacheGb * KV.gbMonth;
  return {
    k,
    m,
    regions: regions.map((region) => region.name),
    cacheShare,
    meanMs: all.meanMs,
    p99Ms: all.p99Ms,
    storageOverhead: (k + m) / k,
    ...ninesOf(request, layout),
    costPerMonth:
      layout.storageCost +
      (fetched * data.readsPerMonth * price("getPerMillion")) / 1e6 +
      gigabytes * price("egressPerGb") +
      cacheCost,
  };
}

function ninesOf(
  { failures }: AdviceRequest,
  { k, m, regions }: Layout,
): Pick<Rated, "availabilityNines" | "durabilityNines"> {
  const model = { ...FAILURES_DEFAULT, ...failures };
  const places = regions.map(({ name, provider = name }, r) => ({
    provider,
    chunks: chunksIn(r, regions.length, k + m),
  }));
  return {
    availabilityNines: nines(unavailability(places, m, model)),
    durabilityNines: nines(lossesPerYear(places, m, model)),
  };
}

/** Share of the chunks read from each region: the nearest k of every PoP, weighted by its audience. */
function regionUse({ pops, data }: AdviceRequest, { k, m, regions }: Layout): Float64Array {
  const use = new Float64Array(regions.length);
  const weights = pops.reduce((sum, pop) => sum + pop.weight, 0);
  for (const { name, weight } of pops) {
    const nearest = Array.from({ length: k + m }, (_, c) => c % regions.length)
      .toSorted((a, b) => chunkMs(regions[a]!, name, data, k) - chunkMs(regions[b]!, name, data, k))
      .slice(0, k);
    for (const r of nearest) use[r]! += weight / weights / k;
  }
  return use;
}

function checkRequest(request: AdviceRequest): void {
  const { pops, regions } = checked(requestShape, request);
  for (const [r, { latencyMs }] of regions.entries()) {
    const missing = pops.find(({ name }) => latencyMs[name] === undefined);
    if (missing) refuse(`regions[${r}].latencyMs.${missing.name}`, "is missing");
  }
}
