/**
 * A day of requests at three PoPs: prints the table of docs/internals/policies-measured.md.
 *
 *   node packages/lab/bench/day-trace.ts [requests]    # default 1,000,000, about half an hour
 *
 * The rate rises and falls over the day. A flash crowd asks for an object that was read seldom, a region is out for an
 * hour, and a deploy replaces a fifth of the objects. Caches change once a minute, without exchanges in between.
 */

import { readFileSync } from "node:fs";
import { seededRandom } from "@agarose/solver/random";
import { parseScenario } from "@agarose/solver/internal/simulator/scenario/parse-scenario";
import { simulate } from "@agarose/solver/internal/simulator/simulate";
import type { SimulationRow } from "@agarose/solver/internal/simulator/simulate";
import type { Trace } from "@agarose/solver/internal/traces/trace";

const REQUESTS = Number(process.argv[2] ?? 1_000_000);
const OBJECTS = 500;
const HOUR = 3600;
const DAY = 24 * HOUR;
/** A fifth of the objects gets new names: new versions are other objects to a cache. */
const DEPLOY = { atSeconds: 11 * HOUR, share: 0.2 };
const FLASH = { atSeconds: 18 * HOUR, forSeconds: HOUR / 2, share: 0.3 };
const OUTAGE = { atSeconds: 20 * HOUR, forSeconds: HOUR, region: "n-virginia", down: true };
const BYTES = 1_000_000;
/** Dollars: a write to Workers KV, a request to a bucket, and a GB that leaves it. */
const PRICE = { write: 5e-6, request: 4e-7, gigabyte: 0.09 };
const K = 9;

const SYSTEMS = [
  { name: "LRU of whole objects", policy: "lru", joint: false, read: { delta: 0, cachedChunks: "exact" } },
  { name: "W-TinyLFU of whole objects", policy: "w-tinylfu", joint: false, read: { delta: 0, cachedChunks: "exact" } },
  { name: "adaptive, PoPs alone", policy: "adaptive", joint: false, read: { delta: 1, cachedChunks: "functional" } },
  { name: "all", policy: "adaptive", joint: true, read: { delta: 1, cachedChunks: "functional" } },
  {
    name: "oracle of the next periods",
    policy: "clairvoyant",
    joint: true,
    read: { delta: 1, cachedChunks: "functional" },
  },
];

const trace = dayOfRequests();
const world = JSON.parse(
  readFileSync(new URL("../../solver/scenarios/five-together.json", import.meta.url), "utf8"),
) as object;
const rows: SimulationRow[] = [];
for (const system of SYSTEMS) {
  const changes = { runs: 1, exchangeSeconds: 60, events: [OUTAGE], systems: [system] };
  rows.push(simulate(parseScenario({ ...world, ...changes }), { trace }).find(({ pop }) => pop === "all")!);
  process.stderr.write(`${system.name}: ${rows.at(-1)!.meanMs.toFixed(0)} ms\n`);
}
const oracle = rows.at(-1)!;
process.stdout.write(
  [
    "| system | mean ms | against the oracle | p99 ms | reads without a cached chunk | writes | dollars |",
    "| --- | --- | --- | --- | --- | --- | --- |",
    ...rows.map((row) => `| ${cellsOf(row).join(" | ")} |`),
    "",
  ].join("\n"),
);

function cellsOf(row: SimulationRow): string[] {
  return [
    row.name,
    row.meanMs.toFixed(0),
    `+${(100 * (row.meanMs / oracle.meanMs - 1)).toFixed(0)}%`,
    row.p99Ms.toFixed(0),
    `${(100 * (1 - row.hitRatio)).toFixed(1)}%`,
    row.writes.toFixed(0),
    dollarsOf(row).toFixed(2),
  ];
}

/** Writes, and the chunks that reads and fills get from buckets. A write fills a chunk from k of them at worst. */
function dollarsOf({ writes, reads, requestsPerRead, chunkHitRatio, peerChunkRatio }: SimulationRow): number {
  const fromBuckets = reads * (requestsPerRead - K * (chunkHitRatio + peerChunkRatio)) + writes * K;
  return writes * PRICE.write + fromBuckets * (PRICE.request + (PRICE.gigabyte * BYTES) / K / 1e9);
}

function dayOfRequests(): Trace {
  const random = seededRandom(7);
  const fresh = Math.round(OBJECTS * DEPLOY.share);
  const objects = OBJECTS + fresh;
  const rankOf = random.shuffle(Array.from({ length: OBJECTS }, (_, rank) => rank));
  const isReplaced = new Set(random.shuffle(Array.from({ length: OBJECTS }, (_, o) => o)).slice(0, fresh));
  const replacement = new Map([...isReplaced].map((object, i) => [object, OBJECTS + i]));
  const weights = Float64Array.from({ length: OBJECTS }, (_, o) => (rankOf[o]! + 1) ** -1.1);
  const cumulative = weights.slice();
  for (let o = 1; o < OBJECTS; o++) cumulative[o]! += cumulative[o - 1]!;
  const seldom = rankOf.indexOf(OBJECTS - 1);
  const seconds = Float64Array.from({ length: REQUESTS }, () =>
    momentOf(random.next(), () => random.next()),
  ).toSorted();
  const object = Int32Array.from(seconds, (at) => {
    const isFlash = at >= FLASH.atSeconds && at < FLASH.atSeconds + FLASH.forSeconds;
    if (isFlash && random.next() < FLASH.share) return seldom;
    const target = random.next() * cumulative.at(-1)!;
    const drawn = cumulative.findIndex((sum) => sum > target);
    return at >= DEPLOY.atSeconds ? (replacement.get(drawn) ?? drawn) : drawn;
  });
  const counts = { lines: REQUESTS, reads: REQUESTS, readsKept: REQUESTS, otherLines: 0, malformedLines: 0 };
  return {
    keys: Array.from({ length: objects }, (_, o) => `object-${o}`),
    bytes: new Float64Array(objects).fill(BYTES),
    seconds,
    object,
    pop: new Int16Array(REQUESTS).fill(-1),
    pops: [],
    share: 1,
    report: { ...counts, malformed: [] },
  };
}

/** A moment of the day: the rate is lowest at midnight, and highest at noon with six times as much. */
function momentOf(uniform: number, next: () => number): number {
  for (let at = uniform * DAY; ; at = next() * DAY) {
    const rate = 1 - (5 / 7) * Math.cos((2 * Math.PI * at) / DAY);
    if (next() * (12 / 7) < rate) return at;
  }
}
