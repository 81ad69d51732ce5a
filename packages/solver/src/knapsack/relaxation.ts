/**
 * The linear relaxation of the multiple-choice knapsack, in expected linear time.
 *
 * Sinha & Zoltners (1979): the relaxation walks the edges of every object's upper convex hull by falling slope (value
 * per weight) until one no longer fits. Instead of sorting all edges, a sample of objects brackets the slope of that
 * break edge. Objects that choose the same option at both ends of the bracket are decided; the others are sampled
 * again.
 */
import type { InstanceFacts, KnapsackInstance } from "./instance.ts";

/** The solution of the relaxation without its last, partial edge. */
interface Relaxation {
  /** Option per object, or -1: the hull walk up to the break edge. Fits the capacity. */
  readonly base: Int32Array;
  readonly baseWeight: number;
  /** Slope of the break edge; every base option maximises value - slope x weight in its object. */
  readonly slope: number;
  /** Objects whose edges lie next to the break: where an exchange costs least. */
  readonly near: Int32Array;
}

const SAMPLE_OBJECTS = 256;
const SORT_OBJECTS_MAX = 512;
const NEAR_EDGES = 160;

/** Solves the relaxation. The richest options together must exceed the capacity; otherwise they are the optimum. */
export function relax(instance: KnapsackInstance, facts: InstanceFacts): Relaxation {
  const walk = new Walk(instance, facts);
  let stalls = 0;
  while (walk.active.length > SORT_OBJECTS_MAX && stalls < 2) {
    const before = walk.active.length;
    walk.narrow();
    if (walk.active.length > 0.7 * before) stalls++;
  }
  return walk.finish();
}

interface Edges {
  count: number;
  slope: Float64Array;
  weight: Float64Array;
  object: Int32Array;
  option: Int32Array;
}

class Walk {
  active: Int32Array;
  readonly #instance: KnapsackInstance;
  readonly #capacity: number;
  /** Option at the steep end of the bracket, and at the flat end. */
  readonly #light: Int32Array;
  readonly #heavy: Int32Array;
  readonly #hull = new HullBuilder();

  constructor(instance: KnapsackInstance, facts: InstanceFacts) {
    this.#instance = instance;
    this.#capacity = facts.capacity;
    this.#light = new Int32Array(facts.richest.length).fill(-1);
    this.#heavy = facts.richest;
    this.active = new Int32Array(facts.richest.length);
    let count = 0;
    for (let i = 0; i < facts.richest.length; i++) if (facts.richest[i]! >= 0) this.active[count++] = i;
    this.active = this.active.subarray(0, count);
  }

  /** Brackets the break slope by a sample and drops every object that is decided inside the bracket. */
  narrow(): void {
    const { active } = this;
    const light = this.#light;
    const heavy = this.#heavy;
    const [steep, flat] = this.#sampleBracket();
    const steepOption = new Int32Array(active.length);
    const flatOption = new Int32Array(active.length);
    const room = this.#capacity - this.#weightOf(light);
    const [steepExtra, flatExtra] = this.#chooseAt(steep, flat, steepOption, flatOption);
    let count = 0;
    for (let a = 0; a < active.length; a++) {
      const i = active[a]!;
      if (steepExtra > room) heavy[i] = steepOption[a]!;
      else if (flatExtra > room) {
        light[i] = steepOption[a]!;
        heavy[i] = flatOption[a]!;
      } else light[i] = flatOption[a]!;
      if (light[i] !== heavy[i]) active[count++] = i;
    }
    this.active = active.subarray(0, count);
  }

  /** Two slopes that very likely enclose the break: the sample's quantile, two standard errors to either side. */
  #sampleBracket(): [number, number] {
    const { active } = this;
    const stride = active.length / SAMPLE_OBJECTS;
    const sample = new Int32Array(SAMPLE_OBJECTS);
    for (let s = 0; s < SAMPLE_OBJECTS; s++) sample[s] = active[Math.floor(s * stride)]!;
    const edges = this.#edgesOf(sample);
    const order = orderBySlope(edges);
    const room = (this.#capacity - this.#weightOf(this.#light)) / stride;
    let used = 0;
    let at = 0;
    while (at < order.length && used + edges.weight[order[at]!]! <= room) used += edges.weight[order[at++]!]!;
    const margin = Math.ceil(2 * Math.sqrt(order.length));
    const steep = at - margin >= 0 ? edges.slope[order[at - margin]!]! : Infinity;
    const flat = at + margin < order.length ? edges.slope[order[at + margin]!]! : 0;
    return [steep, flat];
  }

  /** The best option of every active object at two slopes, and the weight each choice adds to the light one. */
  #chooseAt(steep: number, flat: number, steepOption: Int32Array, flatOption: Int32Array): [number, number] {
    const { start, weights, values } = this.#instance;
    const { active } = this;
    const light = this.#light;
    const heavy = this.#heavy;
    const capacity = this.#capacity;
    let steepExtra = 0;
    let flatExtra = 0;
    for (let a = 0; a < active.length; a++) {
      const i = active[a]!;
      const from = light[i]!;
      const fromWeight = from < 0 ? 0 : weights[from]!;
      const fromValue = from < 0 ? 0 : values[from]!;
      const weightMax = weights[heavy[i]!]!;
      let steepAt = from;
      let steepGain = 0;
      let steepWeight = 0;
      let flatAt = from;
      let flatGain = 0;
      let flatWeight = 0;
      for (let j = start[i]!, end = start[i + 1]!; j < end; j++) {
        const weight = weights[j]! - fromWeight;
        if (weight <= 0 || weights[j]! > capacity || weights[j]! > weightMax) continue;
        const value = values[j]! - fromValue;
        const gainSteep = value - steep * weight;
        if (gainSteep > steepGain) {
          steepGain = gainSteep;
          steepWeight = weight;
          steepAt = j;
        }
        const gainFlat = value - flat * weight;
        if (gainFlat > flatGain || (gainFlat === flatGain && weight > flatWeight && value > 0)) {
          flatGain = gainFlat;
          flatWeight = weight;
          flatAt = j;
        }
      }
      // At slope 0 the flat end is the richest option, which is already known with its tie broken.
      if (flat === 0) {
        flatAt = heavy[i]!;
        flatWeight = weightMax - fromWeight;
      }
      steepOption[a] = steepAt;
      flatOption[a] = flatAt;
      steepExtra += steepWeight;
      flatExtra += flatWeight;
    }
    return [steepExtra, flatExtra];
  }

  /** Walks the edges that are left in exact order. */
  finish(): Relaxation {
    const edges = this.#edgesOf(this.active);
    const order = orderBySlope(edges);
    const base = this.#light;
    let weight = this.#weightOf(base);
    let at = 0;
    for (; at < order.length; at++) {
      const edge = order[at]!;
      if (edges.weight[edge]! > this.#capacity - weight) break;
      weight += edges.weight[edge]!;
      base[edges.object[edge]!] = edges.option[edge]!;
    }
    const slope = order.length > 0 ? edges.slope[order[Math.min(at, order.length - 1)]!]! : 0;
    const near = new Set<number>();
    const first = Math.max(0, at - NEAR_EDGES / 2);
    for (let e = first; e < Math.min(order.length, first + NEAR_EDGES); e++) near.add(edges.object[order[e]!]!);
    return { base, baseWeight: weight, slope, near: Int32Array.from(near) };
  }

  #weightOf(option: Int32Array): number {
    const { weights } = this.#instance;
    let sum = 0;
    for (let i = 0; i < option.length; i++) if (option[i]! >= 0) sum += weights[option[i]!]!;
    return sum;
  }

  #edgesOf(objects: Int32Array): Edges {
    const { start } = this.#instance;
    let room = 0;
    for (const i of objects) room += start[i + 1]! - start[i]!;
    const edges: Edges = {
      count: 0,
      slope: new Float64Array(room),
      weight: new Float64Array(room),
      object: new Int32Array(room),
      option: new Int32Array(room),
    };
    for (const i of objects) this.#hull.append(this.#instance, i, this.#light[i]!, this.#heavy[i]!, edges);
    return edges;
  }
}

/** Builds the upper convex hull of one object between two of its hull options. */
class HullBuilder {
  #stack = new Int32Array(64);
  #slopes = new Float64Array(64);

  append(instance: KnapsackInstance, object: number, light: number, heavy: number, edges: Edges): void {
    const { start, weights, values } = instance;
    const fromWeight = light < 0 ? 0 : weights[light]!;
    const fromValue = light < 0 ? 0 : values[light]!;
    const sorted = this.#sortedBetween(instance, start[object]!, start[object + 1]!, fromWeight, weights[heavy]!);
    if (this.#slopes.length < sorted.length) this.#slopes = new Float64Array(sorted.length * 2);
    const slopes = this.#slopes;
    let top = 0;
    for (const j of sorted) {
      if (values[j]! <= (top > 0 ? values[sorted[top - 1]!]! : fromValue)) continue;
      // Slopes are compared as they will be sorted, so that rounding cannot put an object's edges out of order.
      let slope = 0;
      for (;;) {
        const below = top > 0 ? sorted[top - 1]! : light;
        const rise = values[j]! - (below < 0 ? 0 : values[below]!);
        slope = rise / (weights[j]! - (below < 0 ? 0 : weights[below]!));
        if (top === 0 || slope < slopes[top - 1]!) break;
        top--;
      }
      sorted[top] = j;
      slopes[top++] = slope;
    }
    for (let t = 0; t < top; t++) {
      const below = t > 0 ? weights[sorted[t - 1]!]! : fromWeight;
      edges.slope[edges.count] = slopes[t]!;
      edges.weight[edges.count] = weights[sorted[t]!]! - below;
      edges.object[edges.count] = object;
      edges.option[edges.count++] = sorted[t]!;
    }
  }

  /** Options heavier than `weightMin` up to `weightMax`, by weight, the most valuable first among equals. */
  #sortedBetween(
    { weights, values }: KnapsackInstance,
    begin: number,
    end: number,
    weightMin: number,
    weightMax: number,
  ): Int32Array {
    if (this.#stack.length < end - begin) this.#stack = new Int32Array((end - begin) * 2);
    const stack = this.#stack;
    let count = 0;
    for (let j = begin; j < end; j++) if (weights[j]! > weightMin && weights[j]! <= weightMax) stack[count++] = j;
    const found = stack.subarray(0, count);
    const compare = (a: number, b: number): number => weights[a]! - weights[b]! || values[b]! - values[a]!;
    if (count > 24) {
      found.sort(compare);
      return found;
    }
    for (let s = 1; s < count; s++) {
      const j = found[s]!;
      let t = s;
      while (t > 0 && compare(found[t - 1]!, j) > 0) {
        found[t] = found[t - 1]!;
        t--;
      }
      found[t] = j;
    }
    return found;
  }
}

/** Edge numbers by falling slope; equal slopes keep their order, so an object's edges stay in sequence. */
function orderBySlope(edges: Edges): Int32Array {
  const order = new Int32Array(edges.count);
  for (let e = 0; e < order.length; e++) order[e] = e;
  // A merge sort on plain numbers: a comparator call per comparison would dominate small instances.
  const { slope } = edges;
  let from = order;
  let to = new Int32Array(order.length);
  for (let run = 1; run < order.length; run *= 2) {
    for (let begin = 0; begin < order.length; begin += 2 * run) {
      const middle = Math.min(begin + run, order.length);
      const end = Math.min(begin + 2 * run, order.length);
      let left = begin;
      let right = middle;
      for (let at = begin; at < end; at++) {
        const takeLeft = left < middle && (right >= end || slope[from[left]!]! >= slope[from[right]!]!);
        to[at] = takeLeft ? from[left++]! : from[right++]!;
      }
    }
    [from, to] = [to, from];
  }
  return from;
}
