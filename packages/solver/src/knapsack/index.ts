/**
 * The exact multiple-choice knapsack: which caching option to choose for each object, with a proof.
 *
 * 1. The linear relaxation gives a base solution, a bound and a price per unit of weight (`relaxation.ts`).
 * 2. A narrow search over the objects next to the break finds a very good solution.
 * 3. The gap between the two rules out nearly all exchanges (`core.ts`). Dynamic programming over the rest closes it
 *    (`core-search.ts`).
 *
 * Memory is linear in the options, plus a limited number of states in step 3. When that limit or the time limit comes
 * first, the solution has `optimal: false` and a bound above its value.
 */
import { SolverError } from "../errors.ts";
import { collectCore, type Core } from "./core.ts";
import { searchCore, type SearchLimits, type SearchResult } from "./core-search.ts";
import { CAPACITY_MAX, commonDivisor, inspectInstance, type InstanceFacts, type KnapsackInstance } from "./instance.ts";
import { searchPairs } from "./pair-search.ts";
import { relax } from "./relaxation.ts";

export type { KnapsackInstance } from "./instance.ts";

/** When to stop the proof. */
export interface KnapsackLimits {
  /** Stops the proof after this many milliseconds, >= 0; needs `now`. Default: no limit. */
  readonly timeLimitMs?: number;
  /** A clock in milliseconds, such as `() => performance.now()`. */
  readonly now?: () => number;
}

/** The chosen options, and a bound that proves how good they are. */
export interface KnapsackSolution {
  readonly value: number;
  /** Sum of the chosen weights, never above the capacity. */
  readonly weight: number;
  /** Per object: the chosen option, counted from 0 among its own options, or -1 for none. */
  readonly choice: Int32Array;
  /** Upper bound of the value, equal to `value` when optimal. */
  readonly upperBound: number;
  /** Whether the proof is complete: exact for integer values, to 1e-12 of the value for others. */
  readonly optimal: boolean;
  /** Milliseconds that the call took; only with `now`. */
  readonly ms?: number;
}

/** Gains of integral instances are whole numbers; the small difference to 1 absorbs rounding. */
const INTEGRAL_STEP = 1 - 1e-6;
/** Increasing effort: most instances are proven optimal at the first or second level. */
const PROBE = { entries: 48, states: 256, effort: Infinity };
const NARROW = { states: 1 << 13, effort: 1 << 22 };
const PAIRS = { states: 1 << 13, effort: Infinity };
const WIDE = { states: 1 << 22, effort: 2 ** 30 };

/**
 * Chooses at most one option per object, of the largest total value within the capacity. Does not change the instance.
 * Throws KNAPSACK_INVALID for a malformed instance, or a limit without a clock.
 */
export function solveKnapsack(instance: KnapsackInstance, limits: KnapsackLimits = {}): KnapsackSolution {
  const begun = limits.now?.() ?? 0;
  if (limits.timeLimitMs !== undefined && !(limits.timeLimitMs >= 0 && limits.now)) {
    throw new SolverError("KNAPSACK_INVALID", "timeLimitMs must be >= 0 and needs a clock: pass now as well", {
      timeLimitMs: limits.timeLimitMs,
    });
  }
  const deadline = begun + (limits.timeLimitMs ?? Infinity);
  const expired = (): boolean => limits.now !== undefined && limits.now() > deadline;
  const facts = inspectInstance(instance);
  const solution =
    facts.richestWeight <= facts.capacity ? describe(instance, facts.richest, 0) : solveTight(instance, facts, expired);
  return limits.now ? { ...solution, ms: limits.now() - begun } : solution;
}

/** Solves an instance in which not everything fits. */
function solveTight(instance: KnapsackInstance, facts: InstanceFacts, expired: () => boolean): KnapsackSolution {
  const { base, baseWeight, slope, near } = relax(instance, facts);
  const room = facts.capacity - baseWeight;
  const baseValue = sumOf(instance.values, base);
  const step = facts.integral ? INTEGRAL_STEP : Math.max(1e-12 * baseValue, Number.MIN_VALUE);
  const gainMax = facts.integral ? gainOnLattice(instance, facts, slope, baseValue, room) : slope * room;
  const limits = (level: { states: number; effort: number }): SearchLimits => ({
    statesMax: level.states,
    effortMax: level.effort,
    gainMax,
    expired,
  });
  const coreAt = (gain: number): Core => collectCore(instance, base, slope, slope * room - gain - step);
  let gainBound = gainMax;
  let best: SearchResult = { gain: 0, gainBound, exchanges: undefined };
  const proven = (): boolean => gainBound < best.gain + step;
  const adopt = (found: SearchResult): void => {
    if (found.exchanges) best = found;
    gainBound = Math.min(gainBound, found.gainBound);
  };

  const probe = firstEntries(collectCore(instance, base, slope, slope * room - step, near), PROBE.entries);
  adopt({ ...searchCore(probe, room, 0, step, limits(PROBE)), gainBound });
  if (!proven()) {
    const core = coreAt(best.gain);
    adopt(searchCore(core, fillableRoom(core, room), best.gain, step, limits(NARROW)));
    if (!proven()) {
      adopt(searchPairs(core, slope, room, best.gain, step, limits(PAIRS)));
    }
  }
  if (!proven()) {
    const core = coreAt(best.gain);
    adopt(searchCore(core, fillableRoom(core, room), best.gain, step, limits(WIDE)));
  }
  for (const [object, option] of best.exchanges ?? []) base[object] = option;
  return describe(instance, base, proven() ? 0 : gainBound - best.gain);
}

/**
 * The relaxation's gain, rounded for integral values. When value - a x weight is a multiple of c in every option
 * (values that are a multiple of the weight plus a multiple of a constant), a solution is worth a x its weight plus a
 * multiple of c, and both parts are bounded: the second one by the relaxation, rounded down to a multiple of c.
 */
function gainOnLattice(
  instance: KnapsackInstance,
  { capacity }: InstanceFacts,
  slope: number,
  baseValue: number,
  room: number,
): number {
  const { weights, values } = instance;
  let gain = Math.floor(slope * room + 1e-6);
  const a = Math.floor(slope);
  for (const multiple of a > 0 ? [0, a] : [0]) {
    let divisor = 0;
    for (let j = 0; j < weights.length && divisor !== 1; j++) {
      divisor = commonDivisor(Math.abs(values[j]! - multiple * weights[j]!), divisor);
    }
    const linear = multiple * capacity;
    const rest = baseValue + slope * room - linear;
    if (!(linear < CAPACITY_MAX) || rest < 0) continue;
    const levels = divisor > 0 ? divisor * Math.floor(rest / divisor + 1e-9) : 0;
    gain = Math.min(gain, linear + levels - baseValue);
  }
  return Math.max(gain, 0);
}

/** The part of a core that the probe searches: its first entries, which lose least. */
function firstEntries(core: Core, count: number): Core {
  return core.object.length <= count ? core : { ...core, object: core.object.subarray(0, count) };
}

/** The part of the room that exchanges can fill at all: a multiple of their weights' common divisor. */
function fillableRoom(core: Core, room: number): number {
  let divisor = 0;
  for (let e = 0; e < core.weight.length && divisor !== 1; e++) {
    divisor = commonDivisor(Math.abs(core.weight[e]!), divisor);
  }
  return divisor > 1 ? room - (room % divisor) : room;
}

function describe(instance: KnapsackInstance, option: Int32Array, gap: number): KnapsackSolution {
  const { start, weights, values, capacity } = instance;
  const value = sumOf(values, option);
  const weight = sumOf(weights, option);
  if (weight > capacity) {
    throw new SolverError("INTERNAL", `the solution weighs ${weight}, above its capacity ${capacity}`, {
      weight,
      capacity,
    });
  }
  const choice = new Int32Array(option.length);
  for (let i = 0; i < option.length; i++) choice[i] = option[i]! < 0 ? -1 : option[i]! - start[i]!;
  return { value, weight, choice, upperBound: value + gap, optimal: gap === 0 };
}

function sumOf(numbers: Float64Array, option: Int32Array): number {
  let sum = 0;
  for (let i = 0; i < option.length; i++) if (option[i]! >= 0) sum += numbers[option[i]!]!;
  return sum;
}
