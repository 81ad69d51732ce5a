/**
 * How many objects a PoP needs to know, and what each number costs: prints the tables of
 * docs/internals/policies-measured.md. Objects of 18 kB are requested by Zipf 0.9 out of ten million, and the cache has
 * room for 1 GB.
 *
 * Usage: node --expose-gc packages/lab/bench/known-objects.ts PERIODS KNOWN...    # 0 periods: only simulations
 */

import { cumulate, sampleIndex, seededRandom, type Random } from "@agarose/solver/random";
import {
  type CachedObject,
  type CachePlan,
  type ObjectShape,
  Planner,
  type PlannedContents,
  type PlannerOptions,
} from "@agarose/solver/planner";
import { parseScenario, simulate } from "@agarose/solver/simulator";

const OBJECTS = 10_000_000;
const EXPONENT = 0.9;
const OBJECT_BYTES = 18_000;
const CAPACITY_BYTES = 1e9;
const K = 3;
const M = 1;
/** The most requests that a PoP replays in a period; a busy PoP has more. */
const PERIOD_REQUESTS = 20_000;
const PERIODS = 250;
const SIMULATED_REQUESTS = 200_000;
const REGIONS = ["fra", "lon", "iad", "sfo"].map((name, r) => ({ name, meanMs: 20 + 40 * r, sdMs: 4, down: false }));

/** Cumulative weights by rank. */
const cumulative = cumulate(Float64Array.from({ length: OBJECTS }, (_, rank) => (rank + 1) ** -EXPONENT));

/** As a PoP has it: strings and numbers that came as bytes take less memory than those that were computed. */
function shapeOf(rank: number): ObjectShape {
  const bytes = Math.round(OBJECT_BYTES * (0.5 + ((rank * 2_654_435_761) % 1_000) / 1_000));
  const chunkBytes = Math.ceil(bytes / K);
  const shape: ObjectShape = {
    key: `photos/2026/11/${rank}.jpg`,
    version: `${rank.toString(16).padStart(32, "0")}`,
    k: K,
    m: M,
    placement: REGIONS.map(({ name }) => name),
    stripes: 1,
    chunkBytes,
    shardBytes: chunkBytes,
  };
  return JSON.parse(JSON.stringify(shape)) as ObjectShape;
}

const OPTIONS: Omit<PlannerOptions, "slots"> = {
  policy: "adaptive",
  capacityBytes: CAPACITY_BYTES,
  cacheMs: 5,
  delta: 1,
  functionalPop: 0,
};

/** Requests of a period by rank. */
function requestsOf(random: Random, requests: number): Map<number, number> {
  const counts = new Map<number, number>();
  for (let i = 0; i < requests; i++) {
    const rank = sampleIndex(cumulative, random);
    counts.set(rank, (counts.get(rank) ?? 0) + 1);
  }
  return counts;
}

/** The requests of a busy PoP between two exchanges. */
const EXCHANGE_REQUESTS = Math.round(PERIOD_REQUESTS / 12);

type Ledger = ReadonlyMap<string, CachedObject>;

const ledgerOf = (planned: readonly PlannedContents[]): Ledger =>
  new Map(planned.map(({ object, chunks }) => [object.version, { stripes: 1, chunks, target: chunks, done: 1 }]));

const cpuMs = (run: () => void): number => {
  const begun = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1e3;
};

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

const heapMb = (): number => {
  (globalThis as { gc?: () => void }).gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return (heapUsed + arrayBuffers) / 1e6;
};

/** A PoP that knows the most popular objects already, and then plans period after period. */
function play(known: number, periods: number): string[] {
  const beforeMb = heapMb();
  const random = seededRandom(1);
  const planner = new Planner({ ...OPTIONS, slots: known });
  let ledger: Ledger = new Map();
  let nowMs = 0;
  const times = { period: [] as number[], exchange: [] as number[] };
  let hits = 0;
  let reads = 0;
  const plan = (counts: ReadonlyMap<number, number>, isExchange: boolean): void => {
    nowMs += isExchange ? 5_000 : 55_000;
    const objects = new Map<string, ObjectShape>();
    const requests = Array.from(counts, ([rank, count]) => {
      const shape = shapeOf(rank);
      if (!planner.knows(shape.key)) objects.set(shape.key, shape);
      return { key: shape.key, requests: count, popularity: 0.8 * count };
    }).toSorted((a, b) => b.popularity - a.popularity);
    let made: CachePlan;
    times[isExchange ? "exchange" : "period"].push(
      cpuMs(() => {
        made = planner.plan({ nowMs, requests, objects, regions: REGIONS, ledger, isExchange });
      }),
    );
    if (made!.error !== undefined) throw made!.error;
    if (!isExchange) ledger = ledgerOf(made!.planned);
  };
  plan(new Map(Array.from({ length: known }, (_, rank) => [rank, 1])), false);
  for (let period = 1; period <= periods; period++) {
    plan(requestsOf(random, EXCHANGE_REQUESTS), true);
    const counts = requestsOf(random, PERIOD_REQUESTS);
    for (const [rank, count] of counts) {
      if (period <= 0.9 * periods) break;
      reads += count;
      if (ledger.get(shapeOf(rank).version)?.chunks.length === K) hits += count;
    }
    plan(counts, false);
  }
  return [
    known.toLocaleString("en"),
    (heapMb() - beforeMb).toFixed(0),
    median(times.period.slice(-10)).toFixed(0),
    median(times.exchange.slice(-10)).toFixed(0),
    `${((100 * hits) / reads / (cumulative[Math.floor(CAPACITY_BYTES / OBJECT_BYTES)]! / cumulative.at(-1)!)).toFixed(0)}%`,
  ];
}

/** Requests that a simulation with `count` objects replays in a second of CPU time. Room is for a third of them. */
function simulatedRate(count: number): number {
  const scenario = parseScenario({
    code: { k: K, m: M },
    objects: { count, bytes: OBJECT_BYTES },
    regions: REGIONS.map(({ name }) => name),
    pops: [
      {
        name: "pop",
        regionLatencyMs: Object.fromEntries(REGIONS.map(({ name, meanMs }) => [name, meanMs])),
        cacheLatencyMs: OPTIONS.cacheMs,
        capacityChunks: count,
      },
    ],
    popularity: { type: "zipf", exponent: EXPONENT },
    requests: { perSecond: 1_000, count: SIMULATED_REQUESTS },
    policies: [{ name: OPTIONS.policy }],
  });
  return (1_000 * SIMULATED_REQUESTS) / cpuMs(() => simulate(scenario));
}

const [periods = PERIODS, ...numbers] = process.argv.slice(2).map(Number);
if (periods > 0) for (const known of numbers) console.log(`| ${play(known, periods).join(" | ")} |`);
for (const count of numbers) console.log(`${count} objects: ${simulatedRate(count).toFixed(0)} requests/s simulated`);
