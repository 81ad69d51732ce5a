/**
 * The least possible loss on the scenario `drift`, approximately (docs/internals/policies-measured.md): the loss of
 * filters that know the true distribution of popularity and the rate at which ranks are exchanged, everything except
 * the rank of each object. Each request solves for their estimate exactly, and writes are free. A minute and a half per
 * seed.
 *
 * Usage: node packages/lab/bench/drift-bound.ts [first seed] [last seed]
 */

import { readFile } from "node:fs/promises";
import { resolveExtends } from "@agarose/solver/internal/simulator/scenario/scenario";
import { configureExactly, configureSome } from "@agarose/solver/internal/policy/configure";
import { applyConfiguration } from "@agarose/solver/internal/policy/policy";
import { seededRandom } from "@agarose/solver/random";
import { Caches, SinglePopCache } from "@agarose/solver/internal/simulator/cache-state";
import { parseScenario } from "@agarose/solver/internal/simulator/scenario/parse-scenario";
import type { Scenario } from "@agarose/solver/internal/simulator/scenario/scenario";
import { GeneratedWorkload } from "@agarose/solver/internal/simulator/workload";
import { SimulatedWorld } from "@agarose/solver/internal/simulator/world";

/** Ranks with a level of their own; later ones share levels of neighbours, each wider than the last by the ratio. */
const RANKS_ALONE = 40;
const LEVEL_RATIO = 1.15;
const SWEEPS = 4;
const TINY = 1e-6;

interface Knowledge {
  /** Request probability of every rank, falling. */
  readonly profile: Float64Array;
  /** Chance per request that an object draws another rank. */
  readonly hazard: number;
  /** Whether it uses that each rank belongs to one object alone. */
  readonly isCoupled: boolean;
}

/** Marginals of every object over the ranks, brought forward by every request. */
class InformedFilter {
  readonly estimate: Float64Array;
  readonly #objects: number;
  readonly #hazard: number;
  readonly #isCoupled: boolean;
  /** Per level: the mean probability and the number of its ranks. */
  readonly #level: Float64Array;
  readonly #ranks: Float64Array;
  /** Per object and level: the probability of each single rank of the level. */
  readonly #marginal: Float32Array;
  readonly #weight: Float32Array;
  readonly #toRank: Float32Array;
  readonly #toObject: Float32Array;

  constructor({ profile, hazard, isCoupled }: Knowledge) {
    this.#objects = profile.length;
    this.#hazard = hazard;
    this.#isCoupled = isCoupled;
    const first: number[] = [];
    for (let rank = 0; rank < profile.length;) {
      first.push(rank);
      rank = rank < RANKS_ALONE ? rank + 1 : Math.ceil(rank * LEVEL_RATIO);
    }
    this.#ranks = Float64Array.from(first, (rank, g) => (first[g + 1] ?? profile.length) - rank);
    this.#level = Float64Array.from(first, (rank, g) => {
      return profile.subarray(rank, first[g + 1]).reduce((sum, p) => sum + p, 0) / this.#ranks[g]!;
    });
    const cells = this.#objects * this.#level.length;
    this.#marginal = new Float32Array(cells).fill(1 / this.#objects);
    this.#weight = new Float32Array(isCoupled ? cells : 0);
    this.#toRank = new Float32Array(isCoupled ? cells : 0);
    this.#toObject = new Float32Array(isCoupled ? cells : 0);
    this.estimate = new Float64Array(this.#objects).fill(1 / this.#objects);
  }

  record(object: number): void {
    if (this.#isCoupled) this.#observeTogether(object);
    else this.#observeAlone(object);
    this.#changeRanks();
  }

  /** Bayes' rule for each object by itself: it was asked for, or it was silent. */
  #observeAlone(object: number): void {
    const marginal = this.#marginal;
    const level = this.#level;
    const silence = level.map((p) => 1 - p);
    for (let o = 0, at = 0; o < this.#objects; o++) {
      const likelihood = o === object ? level : silence;
      for (let g = 0; g < likelihood.length; g++, at++) marginal[at]! *= likelihood[g]!;
    }
  }

  /**
   * The posterior over assignments of ranks is approximated by a product of weights, one per object and rank, over
   * one-to-one assignments. A request multiplies the weights of its object; belief propagation, which is Bethe's
   * approximation of the permanent (Vontobel 2013), makes marginals of weights. The weights with given marginals m are
   * m (1 - m).
   */
  #observeTogether(object: number): void {
    const marginal = this.#marginal;
    const weight = this.#weight;
    const toRank = this.#toRank;
    const toObject = this.#toObject;
    const level = this.#level;
    const levels = level.length;
    for (let at = 0; at < marginal.length; at++) {
      const others = Math.max(TINY, 1 - marginal[at]!);
      weight[at] = marginal[at]! * others;
      toObject[at] = 1 / others;
    }
    for (let g = 0; g < levels; g++) weight[object * levels + g]! *= level[g]! / this.estimate[object]!;
    for (let sweep = 0; sweep < SWEEPS; sweep++) this.#sweep();
    for (let at = 0; at < marginal.length; at++) {
      const odds = toRank[at]! * toObject[at]!;
      marginal[at] = odds / (1 + odds);
    }
    this.#fillRanks();
  }

  /** Messages from all objects to all ranks and back. */
  #sweep(): void {
    const weight = this.#weight;
    const toRank = this.#toRank;
    const toObject = this.#toObject;
    const ranks = this.#ranks;
    const objects = this.#objects;
    const levels = ranks.length;
    const reached = new Float64Array(levels);
    for (let from = 0; from < weight.length; from += levels) {
      let sum = 0;
      for (let g = 0; g < levels; g++) sum += ranks[g]! * weight[from + g]! * toObject[from + g]!;
      for (let g = 0; g < levels; g++) {
        const rest = sum - weight[from + g]! * toObject[from + g]!;
        reached[g]! += toRank[from + g] = weight[from + g]! / Math.max(TINY * sum, rest);
      }
    }
    for (let o = 0, at = 0; o < objects; o++) {
      for (let g = 0; g < levels; g++, at++) toObject[at] = 1 / Math.max(TINY * reached[g]!, reached[g]! - toRank[at]!);
    }
  }

  /** Every rank has one object, also where the messages have not settled. */
  #fillRanks(): void {
    const marginal = this.#marginal;
    const levels = this.#level.length;
    const held = new Float64Array(levels);
    for (let from = 0; from < marginal.length; from += levels) {
      for (let g = 0; g < levels; g++) held[g]! += marginal[from + g]!;
    }
    for (let from = 0; from < marginal.length; from += levels) {
      for (let g = 0; g < levels; g++) marginal[from + g]! /= held[g]!;
    }
  }

  /** Normalises each object's marginals; then some objects have changed ranks. */
  #changeRanks(): void {
    const { estimate } = this;
    const marginal = this.#marginal;
    const level = this.#level;
    const ranks = this.#ranks;
    const hazard = this.#hazard;
    const levels = level.length;
    for (let o = 0; o < this.#objects; o++) {
      const from = o * levels;
      let sum = 0;
      for (let g = 0; g < levels; g++) sum += ranks[g]! * marginal[from + g]!;
      let mean = 0;
      for (let g = 0; g < levels; g++) {
        const next = ((1 - hazard) / sum) * marginal[from + g]! + hazard / this.#objects;
        marginal[from + g] = next;
        mean += ranks[g]! * next * level[g]!;
      }
      estimate[o] = mean;
    }
  }
}

/**
 * Loss of mean latency at the first PoP against the oracle, in percent; `pooled` filters see the requests of all PoPs.
 */
function lossOf(scenario: Scenario, isCoupled: boolean, pooled: boolean): number {
  const random = seededRandom(scenario.seed).fork(0);
  const world = new SimulatedWorld(scenario, scenario.systems[0]!, random.fork(1));
  const workload = new GeneratedWorkload(scenario, random);
  const [oracle, informed] = [new Caches(world), new Caches(world)];
  const [oracleCache, informedCache] = [new SinglePopCache(oracle, 0), new SinglePopCache(informed, 0)];
  const profile = workload.truth().toSorted().toReversed();
  const perSecond = scenario.requests.perSecond * (pooled ? scenario.pops.length : 1);
  const hazard = (2 * scenario.popularity.driftSwapsPerSecond) / scenario.objects.count / perSecond;
  const filter = new InformedFilter({ profile, hazard, isCoupled });
  let version = -1;
  let [oracleMs, informedMs] = [0, 0];
  while (workload.next()) {
    const { pop, object } = workload;
    if (pop === 0) {
      if (workload.version !== version) {
        version = workload.version;
        applyConfiguration(oracleCache, configureExactly(oracleCache, workload.truth()).count);
      }
      oracleMs += world.readActual(0, object, oracle.heldOf(object), 0).ms;
      informedMs += world.readActual(0, object, informed.heldOf(object), 0).ms;
    }
    if (pop !== 0 && !pooled) continue;
    filter.record(object);
    if (pop === 0) configure(informedCache, filter.estimate);
  }
  return 100 * (informedMs / oracleMs - 1);
}

/** Solves exactly; the cache is too small for objects well below average, which are left out to save time. */
function configure(cache: SinglePopCache, estimate: Float64Array): void {
  const likely = Array.from(estimate.keys()).filter((o) => estimate[o]! >= 0.5 / cache.objects);
  const { count } = configureSome(cache, estimate, likely, cache.capacity);
  const all = new Uint8Array(cache.objects);
  for (const [i, o] of likely.entries()) all[o] = count[i]!;
  applyConfiguration(cache, all);
}

const load = async (name: string): Promise<unknown> =>
  JSON.parse(await readFile(new URL(`../../solver/scenarios/${name}`, import.meta.url), "utf8"));
const json = (await resolveExtends(await load("drift.json"), load)) as object;
const [first = 1, last = 10] = process.argv.slice(2).map(Number);
const seeds = Array.from({ length: last - first + 1 }, (_, i) => first + i);
for (const [name, isCoupled, pooled] of [
  ["each object by itself", false, false],
  ["all objects together", true, false],
  ["each object by itself, requests of all PoPs", false, true],
] as const) {
  const losses = seeds.map((seed) => lossOf(parseScenario({ ...json, seed, runs: 1 }), isCoupled, pooled));
  const mean = losses.reduce((sum, loss) => sum + loss, 0) / losses.length;
  const deviation = Math.sqrt(
    losses.reduce((sum, loss) => sum + (loss - mean) ** 2, 0) / Math.max(1, losses.length - 1),
  );
  console.log(`${name}: ${mean.toFixed(2)} ± ${deviation.toFixed(2)} (${losses.map((x) => x.toFixed(2)).join(" ")})`);
}
