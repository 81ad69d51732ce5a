/**
 * The core: the options that a solution better than the best known one could still contain.
 *
 * With the break slope as Lagrange multiplier, exchanging the base option h of object i for option j costs loss = (v_h
 * - slope w_h) - (v_j - slope w_j) >= 0 against the relaxation, so no option with a loss of at least the gap between
 * bound and incumbent can be part of a better solution (Dembo & Hammer 1980).
 */
import { grown } from "../grown.ts";
import type { KnapsackInstance } from "./instance.ts";

/** Exchanges grouped by object, cheapest object first. Options of entry c are `first[c] .. first[c+1]-1`. */
export interface Core {
  readonly object: Int32Array;
  readonly first: Int32Array;
  /** Smallest loss of the entry's exchanges; non-decreasing. */
  readonly lossMin: Float64Array;
  readonly option: Int32Array;
  readonly weight: Float64Array;
  readonly value: Float64Array;
  readonly loss: Float64Array;
}

/** Collects every exchange that loses less than `gap`; `objects` limits the search, undefined means all of them. */
export function collectCore(
  instance: KnapsackInstance,
  base: Int32Array,
  slope: number,
  gap: number,
  objects?: Int32Array,
): Core {
  const { start, weights, values, capacity } = instance;
  const found = new Exchanges();
  const count = objects ? objects.length : base.length;
  for (let o = 0; o < count; o++) {
    const i = objects ? objects[o]! : o;
    const from = base[i]!;
    const fromWeight = from < 0 ? 0 : weights[from]!;
    const fromValue = from < 0 ? 0 : values[from]!;
    const ceiling = fromValue - slope * fromWeight;
    if (from >= 0 && ceiling < gap) found.push(i, -1, -fromWeight, -fromValue, ceiling > 0 ? ceiling : 0);
    for (let j = start[i]!, end = start[i + 1]!; j < end; j++) {
      const loss = ceiling - (values[j]! - slope * weights[j]!);
      if (loss >= gap || j === from || weights[j]! > capacity) continue;
      const weight = weights[j]! - fromWeight;
      const value = values[j]! - fromValue;
      // Heavier without more value is plainly dominated by the base option.
      if (weight >= 0 && value <= 0) continue;
      found.push(i, j, weight, value, loss > 0 ? loss : 0);
    }
  }
  return sortByLoss(found);
}

class Exchanges {
  count = 0;
  // Most cores are small, and typed arrays of at most 64 bytes are cheap.
  object = new Int32Array(8);
  option = new Int32Array(8);
  weight = new Float64Array(8);
  value = new Float64Array(8);
  loss = new Float64Array(8);

  push(object: number, option: number, weight: number, value: number, loss: number): void {
    if (this.count === this.object.length) this.#grow();
    const at = this.count++;
    this.object[at] = object;
    this.option[at] = option;
    this.weight[at] = weight;
    this.value[at] = value;
    this.loss[at] = loss;
  }

  #grow(): void {
    const size = this.object.length * 2;
    this.object = grown(this.object, size);
    this.option = grown(this.option, size);
    this.weight = grown(this.weight, size);
    this.value = grown(this.value, size);
    this.loss = grown(this.loss, size);
  }
}

function sortByLoss(found: Exchanges): Core {
  const begins: number[] = [];
  for (let e = 0; e < found.count; e++) if (e === 0 || found.object[e] !== found.object[e - 1]) begins.push(e);
  const groups = begins.length;
  begins.push(found.count);
  const lossMin = new Float64Array(groups);
  // Among equal losses, objects that can grow and objects that can only shrink alternate: either kind alone fits
  // nothing.
  const turn = new Int32Array(groups);
  const turns = [0, 0];
  for (let g = 0; g < groups; g++) {
    let least = Infinity;
    let grows = 0;
    for (let e = begins[g]!; e < begins[g + 1]!; e++) {
      if (found.loss[e]! < least) least = found.loss[e]!;
      if (found.weight[e]! > 0) grows = 1;
    }
    lossMin[g] = least;
    turn[g] = turns[grows]!++;
  }
  const order = new Int32Array(groups);
  for (let g = 0; g < groups; g++) order[g] = g;
  order.sort((a, b) => lossMin[a]! - lossMin[b]! || turn[a]! - turn[b]! || a - b);

  const core = {
    object: new Int32Array(groups),
    first: new Int32Array(groups + 1),
    lossMin: new Float64Array(groups),
    option: new Int32Array(found.count),
    weight: new Float64Array(found.count),
    value: new Float64Array(found.count),
    loss: new Float64Array(found.count),
  };
  let at = 0;
  for (let c = 0; c < groups; c++) {
    const g = order[c]!;
    core.object[c] = found.object[begins[g]!]!;
    core.lossMin[c] = lossMin[g]!;
    for (let e = begins[g]!; e < begins[g + 1]!; e++, at++) {
      core.option[at] = found.option[e]!;
      core.weight[at] = found.weight[e]!;
      core.value[at] = found.value[e]!;
      core.loss[at] = found.loss[e]!;
    }
    core.first[c + 1] = at;
  }
  return core;
}
