/**
 * How wrong a sample of a log's objects is: the same reads, whole and sampled at several shares, with each policy.
 *
 *   node packages/lab/bench/sample-error.ts [reads]    # default 2,000,000, a few minutes
 *
 * Zipf 0.9 over 200,000 objects of one MB at one PoP, whose cache holds a twentieth of them. Errors are in percentage
 * points of the ratio of full hits, and in percent of the mean; "reads" is the share of the reads that the sample has.
 */
import { seededRandom } from "@agarose/solver/random";
import { parseScenario, withCacheFactor } from "@agarose/solver/internal/simulator/scenario/scenario";
import { simulate, type SimulationRow } from "@agarose/solver/internal/simulator/simulate";
import { sampleTrace } from "@agarose/solver/internal/traces/sample";
import type { Trace } from "@agarose/solver/internal/traces/trace";

const READS = Number(process.argv[2] ?? 2_000_000);
const OBJECTS = 200_000;
const BYTES = 1_000_000;
const SEED = 5;
const POLICIES = ["lru", "w-tinylfu", "adaptive"];
const SHARES = [1 / 2, 1 / 8, 1 / 32];

const scenario = parseScenario({
  code: { k: 4, m: 2 },
  objects: { count: OBJECTS, bytes: BYTES },
  regions: ["a", "b", "c", "d", "e", "f"],
  pops: [
    {
      name: "pop",
      regionLatencyMs: { a: 9, b: 28, c: 12, d: 11, e: 13, f: 17 },
      regionMbitPerSecond: 200,
      cacheLatencyMs: 4,
      capacityBytes: 0.05 * OBJECTS * BYTES,
    },
  ],
  popularity: { type: "uniform" },
  requests: { perSecond: 1, count: 1 },
  policies: POLICIES.map((name) => ({ name })),
});

const trace = zipfReads();
const whole = play(trace);
console.log(`${READS} reads of ${OBJECTS} objects, seed ${SEED}`);
console.log("share   reads   policy      full hits  error (points)  mean ms  error (%)");
for (const share of SHARES) {
  const sample = sampleTrace(trace, share * READS);
  for (const [i, row] of play(sample).entries()) {
    const all = whole[i]!;
    const cells = [
      sample.share.toFixed(3),
      (sample.object.length / READS).toFixed(3),
      row.name.padEnd(10),
      all.fullHitRatio.toFixed(3).padStart(10),
      (100 * (row.fullHitRatio - all.fullHitRatio)).toFixed(2).padStart(14),
      all.meanMs.toFixed(1).padStart(8),
      (100 * (row.meanMs / all.meanMs - 1)).toFixed(1).padStart(9),
    ];
    console.log(cells.join("   "));
  }
}

function play(played: Trace): SimulationRow[] {
  return simulate(withCacheFactor(scenario, played.share), { trace: played }).filter(({ pop }) => pop === "all");
}

function zipfReads(): Trace {
  const random = seededRandom(SEED);
  const cumulative = new Float64Array(OBJECTS);
  let sum = 0;
  for (let rank = 0; rank < OBJECTS; rank++) cumulative[rank] = sum += (rank + 1) ** -0.9;
  const object = Int32Array.from({ length: READS }, () => firstAbove(cumulative, random.next() * sum));
  const counts = { lines: READS, reads: READS, readsKept: READS, otherLines: 0, malformedLines: 0 };
  return {
    keys: Array.from({ length: OBJECTS }, (_, i) => `object-${i}`),
    bytes: new Float64Array(OBJECTS).fill(BYTES),
    seconds: Float64Array.from({ length: READS }, (_, i) => i / 100),
    object,
    pop: new Int16Array(READS).fill(-1),
    pops: [],
    share: 1,
    report: { ...counts, malformed: [] },
  };
}

function firstAbove(sorted: Float64Array, value: number): number {
  let [low, high] = [0, sorted.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
