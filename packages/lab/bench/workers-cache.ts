/**
 * Workers Caching of Cloudflare against KV with the knapsack, and PoPs with places against one Worker everywhere.
 * Prints the tables of docs/internals/policies-measured.md.
 *
 *   node packages/lab/bench/workers-cache.ts    # a minute
 *
 * Workers Caching is modelled as its page describes it: two tiers that keep what was read last, and joined misses.
 * Cloudflare publishes no capacity. The upper tier and the Worker behind it are at the first PoP.
 */
import { readFileSync } from "node:fs";
import { cumulate, sampleIndex, seededRandom } from "@agarose/solver/random";
import {
  parseScenario,
  resolveExtends,
  withCacheFactor,
  type Scenario,
} from "@agarose/solver/internal/simulator/scenario/scenario";
import { simulate } from "@agarose/solver/internal/simulator/simulate";
import { ReadLog, type ReadStatistics } from "@agarose/solver/internal/simulator/statistics";
import { GeneratedWorkload } from "@agarose/solver/internal/simulator/workload";
import { SimulatedWorld } from "@agarose/solver/internal/simulator/world";
import { TieredCache } from "./tiered-cache.ts";

const load = async (name: string): Promise<unknown> =>
  JSON.parse(readFileSync(new URL(`../../solver/scenarios/${name}`, import.meta.url), "utf8"));

const DELTA = 1;
const SYSTEMS = [
  { name: "no cache", policy: "backend", read: { delta: DELTA } },
  { name: "knapsack", policy: "adaptive", read: { delta: DELTA } },
  { name: "defaults", policy: "adaptive", read: { delta: DELTA, cachedChunks: "functional" }, joint: true },
];

/** Of each system, with seeds of their own. */
const RUNS = 2;

async function scenarioOf(name: string): Promise<Scenario> {
  const { policies: _given, ...json } = (await resolveExtends(await load(name), load)) as Record<string, unknown>;
  return parseScenario({ ...json, runs: RUNS, periodSeconds: 60, exchangeSeconds: 60, systems: SYSTEMS });
}

/** Plays the scenario's requests against two tiers, each of the size of a PoP's cache. */
function playTiers(scenario: Scenario): ReadStatistics & { readonly joinedRatio: number } {
  const log = new ReadLog();
  let joined = 0;
  for (let run = 0; run < scenario.runs; run++) {
    const random = seededRandom(scenario.seed).fork(run);
    const world = new SimulatedWorld(scenario, scenario.systems[0]!, random.fork(1));
    const workload = new GeneratedWorkload(scenario, random);
    const noiseSeed = random.fork(3).integer(2 ** 31);
    const nothing = new Int32Array(world.pops.length);
    const { k } = world.code;
    const capacity = world.capacity[0]!;
    const tiers = new TieredCache(world.pops.length, { capacity }, { capacity });
    for (let step = 0; workload.next(); step++) {
      const { seconds, pop, object } = workload;
      world.advance(seconds);
      const { cacheLatencyMs, peerLatencyMs } = world.pops[pop]!;
      let requests = 0;
      const originMs = (): number => {
        const outcome = world.readActual(0, object, nothing, noiseSeed + step);
        requests = outcome.requests;
        return outcome.ms;
      };
      const weight = k * world.chunkWeight[object]!;
      const hopMs = pop === 0 ? 0 : (peerLatencyMs[world.pops[0]!.name] ?? 0);
      const { from, ms } = tiers.read({ lower: pop, object, weight, seconds, edgeMs: cacheLatencyMs, hopMs, originMs });
      if (from === "joined") joined++;
      const fromOwn = from === "origin" ? 0 : k;
      log.add({ ms, requests, fromOwn, fromPeers: 0, isDecoded: false }, k);
    }
  }
  const statistics = log.summarize();
  return { ...statistics, joinedRatio: joined / statistics.reads };
}

const print = (cells: readonly string[]): boolean => process.stdout.write(`| ${cells.join(" | ")} |\n`);
const ms = (value: number): string => value.toFixed(0);
const percent = (value: number): string => `${(100 * value).toFixed(0)}%`;

async function compare(): Promise<void> {
  print(["scenario", "cache", "system", "mean ms", "p99 ms", "whole from a cache", "GETs a read", "KV writes"]);
  print(["---", "---:", "---", "---:", "---:", "---:", "---:", "---:"]);
  for (const name of ["five-together", "flat", "drift", "shift", "mixed-sizes"]) {
    const given = await scenarioOf(`${name}.json`);
    for (const factor of [1, 4, 16]) {
      const scenario = withCacheFactor(given, factor);
      const tiers = playTiers(scenario);
      const rows = simulate(scenario).filter(({ pop }) => pop === "all");
      const line = (system: string, row: ReadStatistics, gets: number, writes: string): boolean =>
        print([
          name,
          `${factor}x`,
          system,
          ms(row.meanMs),
          ms(row.p99Ms),
          percent(row.fullHitRatio),
          gets.toFixed(1),
          writes,
        ]);
      line(`Workers Caching, ${percent(tiers.joinedRatio)} joined`, tiers, tiers.requestsPerRead, "0");
      for (const row of rows) {
        if (row.name === "no cache" && factor > 1) continue;
        const { k } = scenario.code;
        const fromCaches = k * (row.chunkHitRatio + row.peerChunkRatio);
        line(row.name, row, row.requestsPerRead - fromCaches, ms(row.writes));
      }
    }
  }
}

/** Of the Cache API's entries: `FRONT_TTL_SECONDS` of the Worker. */
const FRONT_SECONDS = 3_600;
const OBJECTS = 300;
const HOUR = 3_600;

/**
 * Returns the share of the reads that a Cache API answers: that of a data center alone, by readers who enter at
 * `centers` of them in equal shares. All objects are such that the knapsack keeps them. What the Cache API lacks comes
 * from KV's central store: a data center's own copies of KV values expire after a minute, long before the Cache API's.
 */
function frontRatio(centers: number, perSecond: number): number {
  const random = seededRandom(1);
  const cumulative = cumulate(Array.from({ length: OBJECTS }, (_, rank) => (rank + 1) ** -1.1));
  const front = new TieredCache(centers, { capacity: Infinity, ttlSeconds: FRONT_SECONDS }, { capacity: 0 });
  let reads = 0;
  let found = 0;
  // The first hour fills the caches.
  for (let i = 0; i < 4 * HOUR * perSecond; i++) {
    const seconds = i / perSecond;
    const object = sampleIndex(cumulative, random);
    const lower = random.integer(centers);
    const { from } = front.read({ lower, object, weight: 1, seconds, edgeMs: 0, hopMs: 0, originMs: () => 0 });
    if (seconds < HOUR) continue;
    reads++;
    if (from !== "origin") found++;
  }
  return found / reads;
}

function compareModes(): void {
  print(["reads a second", "mode", "hops a read", "from the Cache API", "from KV's central store"]);
  print(["---:", "---", "---:", "---:", "---:"]);
  for (const perSecond of [0.1, 1, 10]) {
    for (const centers of [1, 4, 16, 64]) {
      const front = frontRatio(centers, perSecond);
      // A PoP with a place is a hop from the data center that a request enters, and all its readers share it.
      const mode = centers === 1 ? "a PoP with a place" : `everywhere, ${centers} data centers`;
      const hops = (centers === 1 ? 1 : 0) + (1 - front);
      print([String(perSecond), mode, hops.toFixed(2), percent(front), percent(1 - front)]);
    }
  }
}

await compare();
process.stdout.write("\n");
compareModes();
