/** The multiple-choice knapsack as flat arrays, and the single pass that checks it. */
import { SolverError } from "../errors.ts";

/**
 * An instance of M objects. The options of object i are `start[i] .. start[i+1]-1`; a solution takes at most one of
 * them.
 */
export interface KnapsackInstance {
  /** In the unit of the weights (chunks or bytes): an integer from 0 to 2^53. */
  readonly capacity: number;
  /** M+1 rising offsets, from 0 to the number of options: every object has at least one option. */
  readonly start: Uint32Array;
  /** Integers from 1 to 2^53 in any order. Equal weights and weights above the capacity are allowed. */
  readonly weights: Float64Array;
  /** Finite numbers >= 0 in any order; they need not rise with the weights, nor be concave. */
  readonly values: Float64Array;
}

/** Results of the checking pass. */
export interface InstanceFacts {
  /** All values are integers, so a bound may be rounded down. */
  readonly integral: boolean;
  /** The capacity rounded down to a multiple of the weights' common divisor. */
  readonly capacity: number;
  /** Per object: its most valuable option that fits alone, the lightest of equals; -1 when none has value. */
  readonly richest: Int32Array;
  /** The weight of all richest options together, or Infinity once it passes the capacity. */
  readonly richestWeight: number;
}

/** The largest capacity and weight: beyond 2^53 a float no longer counts by ones. */
export const CAPACITY_MAX = 2 ** 53;

/** Checks every number of the instance; throws KNAPSACK_INVALID naming the object, the option and the number. */
export function inspectInstance(instance: KnapsackInstance): InstanceFacts {
  checkShape(instance);
  const { start, weights, values, capacity } = instance;
  const count = start.length - 1;
  const richest = new Int32Array(count);
  let divisor = 0;
  let integral = true;
  let used = 0;
  let valueSum = 0;
  for (let i = 0; i < count; i++) {
    let best = -1;
    let bestValue = 0;
    let bestWeight = 0;
    const end = start[i + 1]!;
    for (let j = start[i]!; j < end; j++) {
      const weight = weights[j]!;
      const value = values[j]!;
      // One negated comparison chain also catches NaN.
      if (!(weight >= 1 && weight <= CAPACITY_MAX && value >= 0 && value < Infinity) || weight !== Math.floor(weight)) {
        throw invalidOption(i, j - start[i]!, weight, value);
      }
      if (divisor !== 1) divisor = commonDivisor(weight, divisor);
      if (integral && value !== Math.floor(value)) integral = false;
      if (weight <= capacity && (value > bestValue || (value === bestValue && best >= 0 && weight < bestWeight))) {
        best = j;
        bestValue = value;
        bestWeight = weight;
      }
    }
    richest[i] = best;
    // Compared by the remaining room, which is exact: the sum itself could round above 2^53.
    used = bestWeight <= capacity - used ? used + bestWeight : Infinity;
    valueSum += bestValue;
  }
  if (!(valueSum < Infinity)) {
    throw invalid("the values add up beyond the largest number: scale them down", { valueSum });
  }
  const rounded = divisor > 1 ? capacity - (capacity % divisor) : capacity;
  return { integral: integral && valueSum < CAPACITY_MAX, capacity: rounded, richest, richestWeight: used };
}

function checkShape({ capacity, start, weights, values }: KnapsackInstance): void {
  if (!(capacity >= 0 && capacity <= CAPACITY_MAX) || capacity !== Math.floor(capacity)) {
    throw invalid(`capacity must be an integer from 0 to 2^53, got ${capacity}`, { capacity });
  }
  if (start.length === 0 || start[0] !== 0) {
    throw invalid("start must begin with 0 and have one entry more than objects", { length: start.length });
  }
  const options = start[start.length - 1]!;
  if (weights.length !== options || values.length !== options) {
    throw invalid(
      `start declares ${options} options, but there are ${weights.length} weights and ${values.length} values`,
      { options, weights: weights.length, values: values.length },
    );
  }
  for (let i = 0; i + 1 < start.length; i++) {
    if (start[i + 1]! <= start[i]!) {
      throw invalid(`object ${i} has no options: leave it out of the instance`, { object: i });
    }
  }
}

function invalid(message: string, details: Record<string, unknown>): SolverError {
  return new SolverError("KNAPSACK_INVALID", message, details);
}

function invalidOption(object: number, option: number, weight: number, value: number): SolverError {
  return invalid(
    `object ${object}, option ${option}: weight ${weight} must be an integer from 1 to 2^53, ` +
      `and value ${value} finite and >= 0`,
    { object, option, weight, value },
  );
}

/** Greatest common divisor; 0 is neutral. */
export function commonDivisor(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}
