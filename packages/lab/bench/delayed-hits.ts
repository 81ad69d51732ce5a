/**
 * Delayed hits (SIGCOMM 2020): readers who ask for a stripe while it is on its way share that request, so they wait for
 * the rest of it. Prints the table of docs/internals/policies-measured.md.
 *
 *   node packages/lab/bench/delayed-hits.ts    # some seconds
 *
 * One PoP of `five-together.json` without peers, with the true popularity. All reads go through
 * `/o/`, which share requests. A flight of L ms begins with a read. Lambda x L more reads join it, and wait for half of
 * it on average.
 */

import { readFileSync } from "node:fs";
import { solveKnapsack } from "@agarose/solver/knapsack";
import { cachingOptions } from "@agarose/solver/internal/options/caching-option";
import { seededRandom } from "@agarose/solver/random";

const { code, objects, pops, regions } = JSON.parse(
  readFileSync(new URL("../../solver/scenarios/five-together.json", import.meta.url), "utf8"),
) as {
  readonly code: { readonly k: number; readonly m: number };
  readonly objects: { readonly count: number };
  readonly pops: readonly {
    readonly regionLatencyMs: Readonly<Record<string, number>>;
    readonly cacheLatencyMs: number;
    readonly capacityChunks: number;
  }[];
  readonly regions: readonly string[];
};
const { k, m } = code;
const [{ regionLatencyMs, cacheLatencyMs: cacheMs, capacityChunks }] = pops as [(typeof pops)[0]];

/** Mean milliseconds that a read waits, if reads that meet a flight share it. `perMs`: reads of the object. */
function waitMs(flightMs: number, perMs: number): number {
  const joining = perMs * flightMs;
  return (flightMs * (1 + joining / 2)) / (1 + joining);
}

interface Option {
  readonly d: number;
  readonly weight: number;
  readonly readMs: number;
}

const weights = Array.from({ length: objects.count }, (_, rank) => (rank + 1) ** -1.1);
const total = weights.reduce((sum, weight) => sum + weight, 0);
/** Sizes from 1 to 32, so that some popular objects are large. */
const random = seededRandom(1);
const sizes = weights.map(() => 2 ** random.integer(6));
const MEAN_SIZE = 63 / 6;

const optionsOf = weights.map((_, o): Option[] => {
  const sources = Array.from({ length: k + m }, (_chunk, chunk) => {
    const meanMs = regionLatencyMs[regions[(o + chunk) % regions.length]!]!;
    return { chunk, meanMs, sdMs: 0.3 * meanMs };
  });
  const object = { k, m, chunkBytes: sizes[o]!, sources, cacheMs, delta: 1, popularity: 1, firstRow: k + m };
  const options = cachingOptions(object);
  const uncached = options[0]!.value + options[0]!.readMs;
  return [{ d: 0, weight: 0, readMs: uncached }, ...options];
});

/** Returns the mean wait of the contents that are best by `valueOf`, and the share of the reads that share a flight. */
function solve(perSecond: number, valueOf: (readMs: number, perMs: number) => number) {
  const start = [0];
  const all: Option[] = [];
  const values: number[] = [];
  for (const [o, [without, ...options]] of optionsOf.entries()) {
    const perMs = (perSecond * weights[o]!) / total / 1_000;
    for (const option of options) {
      all.push(option);
      values.push(perMs * Math.max(0, valueOf(without!.readMs, perMs) - valueOf(option.readMs, perMs)));
    }
    start.push(all.length);
  }
  const { choice } = solveKnapsack({
    capacity: capacityChunks * MEAN_SIZE,
    start: Uint32Array.from(start),
    weights: Float64Array.from(all, ({ weight }) => weight),
    values: Float64Array.from(values),
  });
  let wait = 0;
  let joined = 0;
  for (const [o, chosen] of choice.entries()) {
    const { readMs } = chosen < 0 ? optionsOf[o]![0]! : all[start[o]! + chosen]!;
    const share = weights[o]! / total;
    const perMs = (perSecond * share) / 1_000;
    wait += share * waitMs(readMs, perMs);
    joined += (share * perMs * readMs) / (1 + perMs * readMs);
  }
  return { wait, joined };
}

process.stdout.write(
  "| reads a second | reads that share a flight | valued by milliseconds | by aggregate delay | change |\n",
);
process.stdout.write("| --- | --- | --- | --- | --- |\n");
for (const perSecond of [1, 10, 100, 1_000, 10_000]) {
  const plain = solve(perSecond, (readMs) => readMs);
  const aggregate = solve(perSecond, waitMs);
  const change = `${(100 * (aggregate.wait / plain.wait - 1)).toFixed(2)}%`;
  const share = `${(100 * plain.joined).toFixed(0)}%`;
  process.stdout.write(
    `| ${perSecond} | ${share} | ${plain.wait.toFixed(1)} | ${aggregate.wait.toFixed(1)} | ${change} |\n`,
  );
}
