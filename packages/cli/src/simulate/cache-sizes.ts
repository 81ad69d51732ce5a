/** How much cache is worth buying: the same requests with caches of several sizes, and what each costs per month. */

import { simulate, withCacheFactor } from "@agarose/solver";
import type { Scenario, Trace } from "@agarose/solver";

/** Workers KV list prices in US dollars (reads and writes per operation, storage per GB and month). */
const READ_PRICE = 0.5e-6;
const WRITE_PRICE = 5e-6;
const STORAGE_PRICE = 0.5;
const MONTH_SECONDS = 30 * 86_400;
/** A larger cache is recommended while it shortens reads by at least this share per doubling. */
const WORTH_DOUBLING = 0.05;

export interface CacheSize {
  readonly name: string;
  /** Relative to the scenario's own caches. */
  readonly factor: number;
  readonly cacheBytes: number;
  readonly meanMs: number;
  readonly p99Ms: number;
  readonly hitRatio: number;
  readonly chunkHitRatio: number;
  /** One KV read for each read that finds something, the writes, and the stored bytes, at list prices. */
  readonly costPerMonth: number;
}

export interface CacheSizes {
  readonly sizes: readonly CacheSize[];
  readonly recommended: { readonly name: string; readonly factor: number; readonly reason: string };
}

/** Simulates every system at every size. The oracle is shown but never recommended. */
export function simulateSizes(scenario: Scenario, factors: readonly number[], trace: Trace | undefined): CacheSizes {
  const sizes = factors.flatMap((factor) => simulateSize(withCacheFactor(scenario, factor), factor, trace));
  const oracles = new Set(scenario.systems.filter(({ policy }) => policy === "clairvoyant").map(({ name }) => name));
  return { sizes, recommended: recommend(sizes.filter(({ name }) => !oracles.has(name))) };
}

export function adviseLines({ sizes, recommended }: CacheSizes): string[] {
  const names = [...new Set(sizes.map(({ name }) => name))];
  const factors = [...new Set(sizes.map(({ factor }) => factor))];
  const width = Math.max(...names.map((name) => name.length)) + 2;
  const cell = (text: string): string => text.padStart(20);
  const lines = names.map((name) => {
    const own = sizes.filter((size) => size.name === name);
    return (
      name.padEnd(width) +
      own.map(({ meanMs, costPerMonth }) => cell(`${meanMs.toFixed(1)} / $${costPerMonth.toFixed(2)}`)).join("")
    );
  });
  return [
    "",
    "mean ms / KV cost per month by cache size",
    "cache".padEnd(width) + factors.map((factor) => cell(`x${factor}`)).join(""),
    ...lines,
    `recommended: ${recommended.name}, cache x${recommended.factor} (${recommended.reason})`,
  ];
}

function simulateSize(scenario: Scenario, factor: number, trace: Trace | undefined): CacheSize[] {
  const rows = simulate(scenario, trace ? { trace } : {}).filter((row) => row.pop === "all");
  const seconds = trace ? Math.max(1, trace.seconds.at(-1)!) : scenario.requests.count / scenario.requests.perSecond;
  const cacheBytes = capacityBytes(scenario, trace);
  return rows.map((row) => {
    const perMonth = MONTH_SECONDS / seconds;
    const operations = (READ_PRICE * row.hitRatio * row.reads) / (trace ? 1 : scenario.runs) + WRITE_PRICE * row.writes;
    return {
      name: row.name,
      factor,
      cacheBytes,
      meanMs: row.meanMs,
      p99Ms: row.p99Ms,
      hitRatio: row.hitRatio,
      chunkHitRatio: row.chunkHitRatio,
      costPerMonth: operations * perMonth + (row.writes > 0 ? (STORAGE_PRICE * cacheBytes) / 1e9 : 0),
    };
  });
}

function capacityBytes({ pops, objects, code }: Scenario, trace: Trace | undefined): number {
  const bytes = trace?.bytes ?? objects.bytes;
  const nominal =
    typeof bytes === "number"
      ? bytes
      : "medianBytes" in bytes
        ? bytes.medianBytes
        : bytes.reduce((sum, size) => sum + size, 0) / bytes.length;
  const chunk = Math.ceil(nominal / code.k);
  return pops.reduce((sum, pop) => sum + (pop.capacityBytes ?? pop.capacityChunks! * chunk), 0);
}

function recommend(sizes: readonly CacheSize[]): CacheSizes["recommended"] {
  const factors = [...new Set(sizes.map(({ factor }) => factor))];
  const bestAt = factors.map((factor) =>
    sizes.filter((size) => size.factor === factor).reduce((best, size) => (size.meanMs < best.meanMs ? size : best)),
  );
  let at = 0;
  while (at + 1 < bestAt.length && gainPerDoubling(bestAt[at]!, bestAt[at + 1]!) >= WORTH_DOUBLING) at++;
  const { name, factor } = bestAt[at]!;
  const next = bestAt[at + 1];
  const reason = next
    ? `x${next.factor} would shorten reads by ${(100 * (1 - next.meanMs / bestAt[at]!.meanMs)).toFixed(1)}%`
    : "the largest size tried still pays: try larger ones";
  return { name, factor, reason };
}

function gainPerDoubling(from: CacheSize, to: CacheSize): number {
  const doublings = from.factor > 0 ? Math.log2(to.factor / from.factor) : 1;
  return doublings > 0 ? (1 - to.meanMs / from.meanMs) / doublings : 0;
}
