/**
 * Cooperating PoPs decide together. A chunk in a near PoP's cache is one more source, so PoPs should keep different
 * chunks, and not the same object everywhere.
 *
 * Each PoP in turn chooses the best contents of its own cache exactly, given what the others hold. It counts what its
 * chunks save at every PoP (block-coordinate ascent). The sum of savings never falls from one round to the next. The
 * result is a configuration that no single PoP can improve, which is not always the best of all.
 */

import { solverError } from "../errors.ts";
import { solveKnapsack } from "../knapsack/index.ts";
import { PeriodPopularity } from "../policy/period-popularity.ts";
import { PopularityFilter } from "../policies/adaptive/popularity-filter.ts";
import type { Caches } from "./cache-state.ts";
import type { Decider } from "./decider.ts";
import type { SystemSpec } from "./scenario/scenario.ts";
import type { World } from "./world.ts";

const ROUNDS = 3;
/** A write costs as much as WRITE_COST_MS of one read, and must pay off within HORIZON_REQUESTS at its PoP. */
const HORIZON_REQUESTS = 4_000;
const WRITE_COST_MS = 200;
/** The adaptive policy decides after this many requests, and then each time after twice as many. */
const FIRST_REQUESTS = 24;

/** Decides for all PoPs of a system together. */
export class JointDecider implements Decider {
  readonly #caches: Caches;
  readonly #world: World;
  readonly #reads: JointReads;
  readonly #popularity: Popularity[];
  readonly #isAdaptive: boolean;
  readonly #demand: Float64Array;
  #truth: Float64Array | undefined;
  #requests = 0;
  #nextEarly = FIRST_REQUESTS;

  constructor(caches: Caches, system: SystemSpec) {
    this.#caches = caches;
    this.#world = caches.world;
    this.#reads = new JointReads(caches.world);
    this.#isAdaptive = system.policy === "adaptive";
    this.#popularity = caches.world.pops.map(() => createPopularity(system, caches.world.objects));
    this.#demand = Float64Array.from(caches.world.pops, (pop) => pop.demand);
  }

  get wantsTruth(): boolean {
    return this.#popularity[0]!.isOracle === true;
  }

  onRequest(pop: number, object: number): void {
    this.#popularity[pop]!.record(object);
    // Otherwise the caches would stay empty until the first period ends.
    if (!this.#isAdaptive || ++this.#requests < this.#nextEarly) return;
    this.#nextEarly *= 2;
    this.#decide();
  }

  onPeriod(): void {
    for (const popularity of this.#popularity) popularity.endPeriod();
    if (!this.wantsTruth) this.#decide();
  }

  onLatency(): void {
    this.#reads.forget();
    this.#decide();
  }

  onTruth(probability: Float64Array): void {
    this.#truth = probability;
    this.#decide();
  }

  #decide(): void {
    const world = this.#world;
    const caches = this.#caches;
    const pops = world.pops.length;
    const wanted = this.#popularity.map((popularity) => this.#truth ?? popularity.estimate());
    const rate = (pop: number, object: number): number => this.#demand[pop]! * wanted[pop]![object]!;
    const count = new Uint8Array(world.objects * pops);
    for (let o = 0; o < world.objects; o++) for (let p = 0; p < pops; p++) count[o * pops + p] = caches.countOf(p, o);
    const before = count.slice();
    for (let round = 0; round < ROUNDS; round++) {
      let changed = false;
      for (let pop = 0; pop < pops; pop++) if (this.#improve(pop, count, before, rate)) changed = true;
      if (!changed) break;
    }
    this.#apply(count);
  }

  /** Gives one PoP its best contents, and returns whether they changed. */
  #improve(pop: number, count: Uint8Array, before: Uint8Array, rate: (pop: number, object: number) => number): boolean {
    const world = this.#world;
    const reads = this.#reads;
    const { k } = world.code;
    const pops = world.pops.length;
    const scale = this.#isAdaptive ? 1 : 0;
    const chosen: number[] = [];
    const start: number[] = [0];
    const weights: number[] = [];
    const values: number[] = [];
    const vector = new Uint8Array(pops);
    for (let o = 0; o < world.objects; o++) {
      let wanted = 0;
      for (let p = 0; p < pops; p++) wanted += rate(p, o);
      if (!(wanted > 0) || world.chunkWeight[o]! > world.capacity[pop]!) continue;
      for (let p = 0; p < pops; p++) vector[p] = count[o * pops + p]!;
      const cost = (d: number): number => {
        vector[pop] = d;
        const ms = reads.expected(world.groupOf[o]!, vector);
        let sum = 0;
        for (let p = 0; p < pops; p++) sum += rate(p, o) * ms[p]!;
        return sum;
      };
      const without = cost(0);
      const stays = before[o * pops + pop]!;
      for (let d = 1; d <= k; d++) {
        weights.push(d * world.chunkWeight[o]!);
        const bonus = d === stays ? (scale * WRITE_COST_MS) / HORIZON_REQUESTS : 0;
        values.push(Math.max(0, without - cost(d)) + bonus);
      }
      chosen.push(o);
      start.push(weights.length);
    }
    const { choice } = solveKnapsack({
      capacity: world.capacity[pop]!,
      start: Uint32Array.from(start),
      weights: Float64Array.from(weights),
      values: Float64Array.from(values),
    });
    const next = new Uint8Array(world.objects);
    for (const [i, o] of chosen.entries()) next[o] = choice[i]! + 1;
    let changed = false;
    for (let o = 0; o < world.objects; o++) {
      if (count[o * pops + pop] !== next[o]) changed = true;
      count[o * pops + pop] = next[o]!;
    }
    return changed;
  }

  #apply(count: Uint8Array): void {
    const world = this.#world;
    const caches = this.#caches;
    const pops = world.pops.length;
    // Shrinks everywhere first, so that no cache exceeds its capacity on the way.
    for (const isGrowing of [false, true]) {
      for (let o = 0; o < world.objects; o++) {
        const held = this.#reads.assign(world.groupOf[o]!, count.subarray(o * pops, (o + 1) * pops));
        for (let p = 0; p < pops; p++) {
          if (count[o * pops + p]! > caches.countOf(p, o) === isGrowing) caches.hold(p, o, held[p]!);
        }
      }
    }
  }
}

interface Popularity {
  readonly isOracle?: boolean;
  record(object: number): void;
  endPeriod(): void;
  /** Relative request rates; rates of PoPs are comparable after multiplying by their demand. */
  estimate(): Float64Array;
}

function createPopularity({ policy, settings }: SystemSpec, objects: number): Popularity {
  if (policy === "adaptive") {
    const filter = new PopularityFilter(objects);
    return { record: (o) => void filter.record(o), endPeriod: () => undefined, estimate: () => filter.estimate };
  }
  if (policy === "exact") {
    const alpha = settings["alpha"] ?? 0.8;
    if (typeof alpha !== "number" || !(alpha > 0 && alpha <= 1)) {
      throw solverError("SCENARIO_INVALID", `exact.alpha must be above 0 and at most 1, got ${String(alpha)}`, {
        alpha,
      });
    }
    const popularity = new PeriodPopularity(objects, alpha);
    return {
      record: (o) => popularity.record(o),
      endPeriod: () => void popularity.endPeriod(),
      estimate: () => normalized(popularity.popularity),
    };
  }
  if (policy === "clairvoyant") {
    return {
      isOracle: true,
      record: () => undefined,
      endPeriod: () => undefined,
      estimate: () => new Float64Array(objects),
    };
  }
  throw solverError("SCENARIO_INVALID", `policy ${policy} cannot place jointly; adaptive, exact and clairvoyant can`, {
    policy,
  });
}

function normalized(numbers: Float64Array): Float64Array {
  const sum = numbers.reduce((total, number) => total + number, 0);
  return sum > 0 ? numbers.map((number) => number / sum) : numbers;
}

/**
 * Expected reads at all PoPs for every combination of numbers of chunks that the PoPs keep, computed when first needed.
 */
class JointReads {
  readonly #world: World;
  readonly #known = new Map<number, { readonly ms: Float64Array; readonly held: Int32Array }>();

  constructor(world: World) {
    this.#world = world;
  }

  forget(): void {
    this.#known.clear();
  }

  /** Milliseconds of a read per PoP; an impossible read counts as a very slow one. */
  expected(group: number, counts: ArrayLike<number>): Float64Array {
    return this.#lookUp(group, counts).ms;
  }

  /**
   * The chunks that each PoP keeps: one PoP after another takes the most distant ones that its reads would still use.
   */
  assign(group: number, counts: ArrayLike<number>): Int32Array {
    return this.#lookUp(group, counts).held;
  }

  #lookUp(group: number, counts: ArrayLike<number>): { readonly ms: Float64Array; readonly held: Int32Array } {
    const world = this.#world;
    const pops = world.pops.length;
    let key = group;
    for (let p = 0; p < pops; p++) key = key * (world.code.k + 1) + counts[p]!;
    let found = this.#known.get(key);
    if (!found) {
      const held = new Int32Array(pops);
      for (let p = 0; p < pops; p++) held[p] = world.chooseChunks(p, group, counts[p]!, held);
      const ms = Float64Array.from({ length: pops }, (_, p) => Math.min(SLOW_MS, world.expectedMs(p, group, held)));
      found = { ms, held };
      this.#known.set(key, found);
    }
    return found;
  }
}

const SLOW_MS = 60_000;
