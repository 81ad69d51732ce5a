/**
 * The same policy in the simulator's world and in a PoP's: the same requests, latencies and capacity, the same
 * configuration.
 */
import { createPolicy } from "../policies/registry.ts";
import { replay } from "../policy/replay.ts";
import { seededRandom } from "../random.ts";
import { parseScenario, type Scenario } from "../simulator/scenario/scenario.ts";
import { expect, test } from "vitest";
// The parts of the simulator, which the solver does not export.
import { Caches, SinglePopCache } from "../simulator/cache-state.ts";
import { SimulatedWorld } from "../simulator/world.ts";
import type { RegionEstimate } from "../options/sources.ts";
import type { ObjectShape } from "./object-shape.ts";
import { Planner } from "./planner.ts";
import type { PlannerState } from "./plan.ts";

/** Table I of Agar: six regions as seen from Frankfurt. */
const LATENCY_MS = { frankfurt: 80, dublin: 200, virginia: 600, saoPaulo: 1400, tokyo: 3400, sydney: 4600 };
const REGIONS = Object.keys(LATENCY_MS);
const OBJECTS = 40;
const PERIODS = 6;
const PERIOD_SECONDS = 60;
const CACHE_MS = 20;
/** In this period a region takes twice as long, and in the next one another is down. */
const SLOW = { period: 3, region: "virginia", factor: 2 };
const DOWN = { period: 4, region: "tokyo" };

type Bytes = number | { distribution: string; medianBytes: number; sigma: number };

function scenarioOf(policy: string, delta: number, bytes: Bytes): Scenario {
  const capacity = typeof bytes === "number" ? { capacityChunks: 90 } : { capacityBytes: 9_000_000 };
  return parseScenario({
    name: "parity",
    seed: 7,
    code: { k: 9, m: 3 },
    objects: { count: OBJECTS, bytes },
    regions: REGIONS,
    pops: [{ name: "fra", regionLatencyMs: LATENCY_MS, cacheLatencyMs: CACHE_MS, ...capacity }],
    popularity: { type: "zipf", exponent: 1 },
    requests: { perSecond: 1, count: 1 },
    periodSeconds: PERIOD_SECONDS,
    read: { delta, cachedChunks: policy === "sprout" ? "functional" : "exact" },
    // A PoP does not know how busy a bucket is.
    load: { utilization: 0 },
    events: [
      {
        atSeconds: SLOW.period * PERIOD_SECONDS,
        forSeconds: 1e9,
        region: SLOW.region,
        latencyFactor: SLOW.factor,
      },
      { atSeconds: DOWN.period * PERIOD_SECONDS, forSeconds: 1e9, region: DOWN.region, down: true },
    ],
    systems: [{ name: "parity", policy }],
  });
}

/** Zipf, with another order of the objects after half of the periods. */
function requestsOf(period: number): number[] {
  const random = seededRandom(period);
  const shift = period < PERIODS / 2 ? 0 : 7;
  return Array.from({ length: OBJECTS }, (_, o) => Math.round((120 * random.next()) / (1 + ((o + shift) % OBJECTS))));
}

function regionsAt(period: number): RegionEstimate[] {
  return Object.entries(LATENCY_MS).map(([name, ms]) => ({
    name,
    meanMs: name === SLOW.region && period >= SLOW.period ? SLOW.factor * ms : ms,
    sdMs: 0,
    down: name === DOWN.region && period >= DOWN.period,
  }));
}

/** How many chunks of each object are kept after each period; and which ones, where they are copies. */
interface Kept {
  readonly counts: number[][];
  readonly chunks: number[][][];
}

/** As the simulator has it. */
function simulated(policyName: string, delta: number, bytes: Bytes): Kept & { world: SimulatedWorld } {
  const scenario = scenarioOf(policyName, delta, bytes);
  const world = new SimulatedWorld(scenario, scenario.systems[0]!, seededRandom(scenario.seed));
  const caches = new Caches(world);
  const cache = new SinglePopCache(caches, 0);
  const policy = createPolicy(policyName, cache, {});
  const kept: Kept = { counts: [], chunks: [] };
  for (let period = 1; period <= PERIODS; period++) {
    const seconds = period * PERIOD_SECONDS;
    replay(policy, requestsOf(period), { from: seconds - PERIOD_SECONDS, to: seconds }, seededRandom(period - 1));
    if (world.advance(seconds)) {
      cache.measure();
      policy.onLatency?.(seconds);
    }
    policy.onPeriod?.(seconds);
    kept.counts.push(Array.from({ length: OBJECTS }, (_, o) => cache.countOf(o)));
    kept.chunks.push(Array.from({ length: OBJECTS }, (_, o) => chunksOf(caches.heldOf(o)[0]!)));
  }
  return { ...kept, world };
}

function chunksOf(mask: number): number[] {
  return Array.from({ length: 12 }, (_, chunk) => chunk).filter((chunk) => mask & (1 << chunk));
}

/** The same as a PoP plans it, from state to state. */
function planned(policy: string, delta: number, world: SimulatedWorld): Kept {
  const objects = Array.from({ length: OBJECTS }, (_, o): ObjectShape => {
    const chunkBytes = world.chunkWeight[o]!;
    const placement = Array.from({ length: 12 }, (_region, chunk) => REGIONS[chunk % REGIONS.length]!);
    return { key: `o${o}`, version: `v${o}`, k: 9, m: 3, placement, stripes: 1, chunkBytes, shardBytes: 1 };
  });
  const kept: Kept = { counts: [], chunks: [] };
  let state: PlannerState | undefined;
  for (let period = 1; period <= PERIODS; period++) {
    const functionalPop = policy === "sprout" ? 0 : undefined;
    const capacityBytes = world.capacity[0]!;
    const options = { policy, capacityBytes, slots: OBJECTS, cacheMs: CACHE_MS, delta, functionalPop };
    const counts = requestsOf(period);
    const plan = new Planner(options, state).plan({
      nowMs: period * PERIOD_SECONDS * 1_000,
      requests: objects.map(({ key }, o) => ({ key, requests: counts[o]!, popularity: counts[o]! })),
      objects: new Map(objects.map((object) => [object.key, object])),
      regions: regionsAt(period),
      ledger: new Map(),
    });
    expect(plan.error).toBeUndefined();
    state = plan.state;
    const chunks = new Map(plan.planned.map((object) => [object.object.key, [...object.chunks]]));
    kept.counts.push(objects.map(({ key }) => chunks.get(key)?.length ?? 0));
    kept.chunks.push(objects.map(({ key }) => chunks.get(key) ?? []));
  }
  return kept;
}

const POLICIES = ["agar", "exact", "online", "lfu", "lru", "sprout", "adaptive"];
/** These choose chunks again in each period; others leave an object alone, and the simulator its chunks, for longer. */
const CHOOSE_EACH_PERIOD = ["agar", "exact", "lfu"];
const CASES = POLICIES.flatMap((policy) => [
  { policy, delta: 0, objects: "objects of one size", bytes: 900_000 },
  {
    policy,
    delta: 1,
    objects: "objects of many sizes",
    bytes: { distribution: "lognormal", medianBytes: 700_000, sigma: 1 },
  },
]);

test.each(CASES)("$policy keeps the same in the simulator and in a PoP: $objects, delta $delta", (given) => {
  const { counts, chunks, world } = simulated(given.policy, given.delta, given.bytes);
  const inPop = planned(given.policy, given.delta, world);
  expect(inPop.counts).toEqual(counts);
  expect(new Set(counts.map(String)).size, "configurations in the course of the periods").toBeGreaterThan(1);
  if (!CHOOSE_EACH_PERIOD.includes(given.policy)) return;
  // A PoP keeps a whole object as data: which k chunks make no difference to any read.
  const notWhole = (kept: number[][][]): number[][][] =>
    kept.map((objects) => objects.filter((ofObject) => ofObject.length < 9));
  expect(notWhole(inPop.chunks)).toEqual(notWhole(chunks));
});
