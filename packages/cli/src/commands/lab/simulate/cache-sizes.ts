/** How much cache is worth buying: the same requests with caches of several sizes, and what each costs per month. */
import { simulate, withCacheFactor, type Scenario } from "@agarose/solver/simulator";
import { sampleTrace, type Trace } from "@agarose/solver/traces";
import { formatBytes, tableLines } from "../../../ui/output.ts";

/** Workers KV list prices in US dollars (reads and writes per operation, storage per GB and month). */
const READ_PRICE = 0.5e-6;
const WRITE_PRICE = 5e-6;
const STORAGE_PRICE = 0.5;
const MONTH_SECONDS = 30 * 86_400;
/** A larger cache is recommended while it shortens reads by at least this share per doubling. */
const WORTH_DOUBLING = 0.05;
/** Means that differ by less count as equal. */
const AS_FAST = 0.02;
/** Every size plays the whole log once more: of longer ones a sample of the objects. */
const READS_MAX = 100_000;

/** The figures of one policy at one cache size. Times in ms, ratios from 0 to 1, costs in US dollars. */
type CacheSize = ReturnType<typeof simulateSize>[number];

/** All policies at all sizes, and which of them to take. */
export interface CacheSizes {
  readonly sizes: readonly CacheSize[];
  readonly recommended: Recommendation;
  /** Share of the log's objects that were played. */
  readonly sampledShare: number;
}

/** The policy and cache size to take, and why. */
export type Recommendation = ReturnType<typeof recommend>;

/** Simulates every system at every size. The oracle is shown but never recommended. */
export function simulateSizes(
  scenario: Scenario,
  factors: readonly number[],
  trace: Trace | undefined,
  onProgress: (done: number) => void = () => undefined,
): CacheSizes {
  const sample = trace && sampleTrace(trace, READS_MAX);
  const sizes = factors.flatMap((factor, at) => {
    const report = (done: number): void => onProgress((at + done) / factors.length);
    return simulateSize(scenario, factor, trace, sample, report);
  });
  const oracles = new Set(scenario.systems.filter(({ policy }) => policy === "clairvoyant").map(({ name }) => name));
  return {
    sizes,
    recommended: recommend(
      sizes.filter(({ name }) => !oracles.has(name)),
      dataBytes(scenario, trace),
    ),
    sampledShare: sample?.share ?? 1,
  };
}

/** Returns the table of sizes for a terminal: a line per policy, a column per size, then the recommendation. */
export function adviseLines({ sizes, recommended, sampledShare }: CacheSizes): string[] {
  const names = [...new Set(sizes.map(({ name }) => name))];
  const factors = [...new Set(sizes.map(({ factor }) => factor))];
  const bytesAt = (factor: number): string => formatBytes(sizes.find((size) => size.factor === factor)!.cacheBytes);
  const rowOf = (name: string): string[] => [
    name,
    ...sizes
      .filter((size) => size.name === name)
      .map(({ meanMs, costPerMonth }) => `${meanMs.toFixed(1)} / $${costPerMonth.toFixed(2)}`),
  ];
  const head = ["cache", ...factors.map((factor) => `x${factor} ${bytesAt(factor)}`)];
  return [
    "",
    `mean ms / KV cost per month by cache size${sampledShare < 1 ? `, from ${(100 * sampledShare).toFixed(0)}% of the objects` : ""}`,
    "(x1 is the cache of the scenario; for a log alone, a cache of 5% of its objects' bytes)",
    ...tableLines([head, ...names.map(rowOf)], (column) => column > 0),
    "",
    sentenceOf(recommended),
  ];
}

function sentenceOf({ name, cacheBytes, factor, meanMs, costPerMonth, reason }: Recommendation): string {
  const cache = `${formatBytes(cacheBytes)} of cache (x${factor})`;
  return `Recommended: policy ${name} with ${cache}: reads take ${meanMs.toFixed(1)} ms on average, Workers KV costs about $${costPerMonth.toFixed(2)} a month; ${reason}.`;
}

function simulateSize(
  scenario: Scenario,
  factor: number,
  trace: Trace | undefined,
  sample: Trace | undefined,
  onProgress: (done: number) => void,
) {
  const share = sample?.share ?? 1;
  const played = withCacheFactor(scenario, factor * share);
  const rows = simulate(played, { onProgress, ...(sample ? { trace: sample } : {}) });
  const seconds = trace ? Math.max(1, trace.seconds.at(-1)!) : scenario.requests.count / scenario.requests.perSecond;
  const perMonth = MONTH_SECONDS / seconds / share;
  const cacheBytes = Math.round(factor * capacityBytes(scenario, trace));
  return rows
    .filter((row) => row.pop === "all")
    .map((row) => {
      const reads = row.reads / (trace ? 1 : scenario.runs);
      const operations = READ_PRICE * row.hitRatio * reads + WRITE_PRICE * row.writes;
      return {
        name: row.name,
        /** Relative to the scenario's own caches. */
        factor,
        /** In all PoPs together. */
        cacheBytes,
        meanMs: row.meanMs,
        p99Ms: row.p99Ms,
        hitRatio: row.hitRatio,
        chunkHitRatio: row.chunkHitRatio,
        /** One KV read for each read that finds something, the writes, and the stored bytes, at list prices. */
        costPerMonth: operations * perMonth + (row.writes > 0 ? (STORAGE_PRICE * cacheBytes) / 1e9 : 0),
      };
    });
}

/** Of all PoPs together. */
function capacityBytes(scenario: Scenario, trace: Trace | undefined): number {
  const chunk = Math.ceil(meanBytes(scenario, trace) / scenario.code.k);
  return scenario.pops.reduce((sum, pop) => sum + (pop.capacityBytes ?? pop.capacityChunks! * chunk), 0);
}

/** The cache that holds everything at every PoP. */
function dataBytes(scenario: Scenario, trace: Trace | undefined): number {
  const objects = trace ? trace.keys.length / trace.share : scenario.objects.count;
  return scenario.pops.length * objects * meanBytes(scenario, trace);
}

function meanBytes({ objects }: Scenario, trace: Trace | undefined): number {
  const bytes = trace?.bytes ?? objects.bytes;
  if (typeof bytes === "number") return bytes;
  return "medianBytes" in bytes ? bytes.medianBytes : bytes.reduce((sum, size) => sum + size, 0) / bytes.length;
}

function recommend(sizes: readonly CacheSize[], wholeBytes: number) {
  const factors = [...new Set(sizes.map(({ factor }) => factor))];
  const bestAt = factors.map((factor) => bestOf(sizes.filter((size) => size.factor === factor)));
  // Not the first step that gains little: a cache too small for anything gains nothing by a little more.
  const at = bestAt.findIndex((from, i) =>
    bestAt.slice(i + 1).every((to) => gainPerDoubling(from, to) < WORTH_DOUBLING),
  );
  const { name, factor, cacheBytes, meanMs, costPerMonth } = bestAt[at]!;
  const next = bestAt[at + 1];
  const reason = next
    ? `x${next.factor} would shorten them by only ${(100 * (1 - next.meanMs / meanMs)).toFixed(1)}%`
    : cacheBytes >= wholeBytes
      ? "it holds everything that is read"
      : "the largest size tried still pays, so try larger ones";
  return { name, factor, cacheBytes, meanMs, costPerMonth, reason };
}

/** The fastest policy, or the cheapest of those that are as fast. */
function bestOf(sizes: readonly CacheSize[]): CacheSize {
  const fastestMs = Math.min(...sizes.map(({ meanMs }) => meanMs));
  const fast = sizes.filter(({ meanMs }) => meanMs <= (1 + AS_FAST) * fastestMs);
  return fast.reduce((best, size) => (size.costPerMonth < best.costPerMonth ? size : best));
}

function gainPerDoubling(from: CacheSize, to: CacheSize): number {
  const doublings = from.factor > 0 ? Math.log2(to.factor / from.factor) : 1;
  return doublings > 0 ? (1 - to.meanMs / from.meanMs) / doublings : 0;
}
