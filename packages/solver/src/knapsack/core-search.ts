/**
 * Dynamic programming over the core, in the manner of Pisinger's minimal algorithm for the multiple-choice knapsack
 * (EJOR 83, 1995). States are exchanges against the base solution, sorted by weight. A state survives only when no
 * lighter one is worth as much and its bound beats the incumbent. A state may be overweight for a while, because a
 * later exchange can give weight back.
 */
import { grown } from "../grown.ts";
import type { Core } from "./core.ts";

/** When a search stops, and whether its result is then complete. */
export interface SearchLimits {
  /**
   * Beyond this number of live states the search drops the worst bounds down to half of it; the result then has a gap.
   */
  readonly statesMax: number;
  /** The search stops after this many states; the result then has a gap. */
  readonly effortMax: number;
  /** No solution can gain more: reaching it ends the search. */
  readonly gainMax: number;
  /** Checked between objects: true stops the search, and the result has a gap. */
  readonly expired: () => boolean;
}

/** The solution of a search, and its proof. */
export interface SearchResult {
  /** Best gain over the base solution, at least `gainKnown`. */
  readonly gain: number;
  /** Upper bound of the gain, equal to `gain` when the search is complete. */
  readonly gainBound: number;
  /** Exchanges of the best solution as (object, option) pairs; undefined when nothing beat `gainKnown`. */
  readonly exchanges: [number, number][] | undefined;
}

/**
 * Searches the core for a gain above `gainKnown` within `room`. It ignores gains below `step`: 1 for integral values,
 * the rounding noise of the sum otherwise.
 */
export function searchCore(
  core: Core,
  room: number,
  gainKnown: number,
  step: number,
  limits: SearchLimits,
): SearchResult {
  const search = new CoreSearch(core, room, gainKnown, step, limits, suffixSlopes(core));
  const gainBound = search.run();
  return { gain: search.gain, gainBound, exchanges: search.exchanges() };
}

/** One search, whose states stay readable after `run`. */
export class CoreSearch {
  readonly #core: Core;
  readonly #room: number;
  readonly #step: number;
  readonly #limits: SearchLimits;
  readonly #history = new History();
  gain: number;
  #droppedBound = -Infinity;
  #bestNode = -1;
  #found = false;
  states = newStates(FEW);
  #spare = newStates(FEW);
  count = 1;
  #effort = 0;
  /** Best slope of any exchange still to come that adds weight, and the least slope of one that gives it back. */
  readonly #slopeUp: Float64Array;
  readonly #slopeDown: Float64Array;

  constructor(core: Core, room: number, gainKnown: number, step: number, limits: SearchLimits, slopes: Slopes) {
    this.#core = core;
    this.#room = room;
    this.#step = step;
    this.#limits = limits;
    this.gain = gainKnown;
    [this.#slopeUp, this.#slopeDown] = slopes;
    this.states.node[0] = -1;
  }

  /** Returns the best bound: no solution gains more. */
  run(): number {
    const core = this.#core;
    const limits = this.#limits;
    const entries = core.object.length;
    let done = 0;
    for (; done < entries && this.count > 0; done++) {
      if (this.gain + this.#step > limits.gainMax) return this.gain;
      if (this.#effort > limits.effortMax || limits.expired()) break;
      this.#extend(done);
      if (this.count > limits.statesMax) this.#thin(done + 1);
      if (this.#history.count > HISTORY_COMPACT && this.#history.count > 8 * this.count) this.#compact();
    }
    let gainBound = this.#droppedBound;
    if (done < entries) for (let s = 0; s < this.count; s++) gainBound = Math.max(gainBound, this.#bound(done, s));
    return Math.max(this.gain, gainBound);
  }

  exchanges(): [number, number][] | undefined {
    return this.#found ? this.#history.path(this.#bestNode) : undefined;
  }

  exchangesOf(state: number): [number, number][] {
    return this.#history.path(this.states.node[state]!);
  }

  /** Lets every state keep entry c as it is or make one of its exchanges, merging by weight. */
  #extend(c: number): void {
    const core = this.#core;
    const room = this.#room;
    const begin = core.first[c]!;
    const width = core.first[c + 1]! - begin;
    const needed = this.count * (width + 1);
    this.#effort += needed;
    if (this.#spare.weight.length < needed) this.#spare = newStates(Math.max(needed, 2 * this.#spare.weight.length));
    const { weight: inWeight, value: inValue, node: inNode } = this.states;
    const { weight: outWeight, value: outValue, node: outNode } = this.#spare;
    const heads = new Int32Array(width + 1);
    const headWeight = new Float64Array(width + 1);
    for (let t = 0; t < width; t++) headWeight[t] = inWeight[0]! + core.weight[begin + t]!;
    headWeight[width] = inWeight[0]!;
    const up = this.#slopeUp[c + 1]!;
    const down = this.#slopeDown[c + 1]!;
    const object = core.object[c]!;
    const inCount = this.count;
    let out = 0;
    let valueMax = -Infinity;
    for (;;) {
      let pick = 0;
      let weight = headWeight[0]!;
      for (let t = 1; t <= width; t++) {
        if (headWeight[t]! < weight) {
          weight = headWeight[t]!;
          pick = t;
        }
      }
      if (weight === Infinity) break;
      const from = heads[pick]!++;
      headWeight[pick] =
        from + 1 < inCount ? inWeight[from + 1]! + (pick < width ? core.weight[begin + pick]! : 0) : Infinity;
      const value = inValue[from]! + (pick < width ? core.value[begin + pick]! : 0);
      if (value <= valueMax) continue;
      valueMax = value;
      const bound = weight <= room ? value + up * (room - weight) : value - down * (weight - room);
      const better = weight <= room && value > this.gain;
      if (bound < this.gain + this.#step && !better) continue;
      // Among equal weights the most valuable survives: it overwrites its predecessor.
      if (out > 0 && outWeight[out - 1] === weight) out--;
      const node = pick < width ? this.#history.push(inNode[from]!, object, core.option[begin + pick]!) : inNode[from]!;
      if (better) this.#improve(value, node);
      outWeight[out] = weight;
      outValue[out] = value;
      outNode[out++] = node;
    }
    this.count = out;
    [this.states, this.#spare] = [this.#spare, this.states];
  }

  #improve(gain: number, node: number): void {
    this.gain = gain;
    this.#bestNode = node;
    this.#found = true;
  }

  #bound(next: number, s: number): number {
    const weight = this.states.weight[s]!;
    const value = this.states.value[s]!;
    if (weight <= this.#room) return value + this.#slopeUp[next]! * (this.#room - weight);
    return value - this.#slopeDown[next]! * (weight - this.#room);
  }

  /** Keeps the best of too many states and remembers the best bound among the dropped. */
  #thin(next: number): void {
    const bounds = new Float64Array(this.count);
    for (let s = 0; s < this.count; s++) bounds[s] = this.#bound(next, s);
    const target = this.#limits.statesMax >> 1;
    const cut = bounds.toSorted()[this.count - target]!;
    const { weight, value, node } = this.states;
    let above = 0;
    let ties = 0;
    for (let s = 0; s < this.count; s++) {
      if (bounds[s]! > cut) above++;
      else if (bounds[s] === cut) ties++;
    }
    // Of the states exactly at the cut, an even spread of weights stays.
    const stride = Math.ceil(ties / (target - above));
    let kept = 0;
    let tie = 0;
    for (let s = 0; s < this.count; s++) {
      if (bounds[s]! < cut || (bounds[s] === cut && tie++ % stride > 0)) {
        this.#droppedBound = Math.max(this.#droppedBound, bounds[s]!);
        continue;
      }
      weight[kept] = weight[s]!;
      value[kept] = value[s]!;
      node[kept++] = node[s]!;
    }
    this.count = kept;
  }

  #compact(): void {
    this.#bestNode = this.#history.compact(this.states.node, this.count, this.#bestNode);
  }
}

const HISTORY_COMPACT = 1 << 21;
/** First length of growing lists. Most cores are small, and typed arrays of at most 64 bytes are cheap. */
const FEW = 8;

interface States {
  weight: Float64Array;
  value: Float64Array;
  node: Int32Array;
}

function newStates(size: number): States {
  return { weight: new Float64Array(size), value: new Float64Array(size), node: new Int32Array(size) };
}

/** Per place in the core: bounds on the slope of later exchanges upwards and downwards. */
export type Slopes = readonly [Float64Array, Float64Array];

/** For every suffix of the core: the steepest exchange upwards and the flattest downwards. */
function suffixSlopes(core: Core): Slopes {
  const entries = core.object.length;
  const up = new Float64Array(entries + 1);
  const down = new Float64Array(entries + 1).fill(Infinity);
  for (let c = entries - 1; c >= 0; c--) {
    let best = up[c + 1]!;
    let least = down[c + 1]!;
    for (let e = core.first[c]!; e < core.first[c + 1]!; e++) {
      const slope = core.value[e]! / core.weight[e]!;
      if (core.weight[e]! > 0) best = Math.max(best, slope);
      else if (core.weight[e]! < 0) least = Math.min(least, slope);
    }
    up[c] = best;
    down[c] = least;
  }
  return [up, down];
}

/** How each state came about: a forest of (parent, object, option), compacted when most of it is dead. */
class History {
  count = 0;
  #parent = new Int32Array(2 * FEW);
  #object = new Int32Array(2 * FEW);
  #option = new Int32Array(2 * FEW);

  push(parent: number, object: number, option: number): number {
    if (this.count === this.#parent.length) {
      const size = this.count * 2;
      this.#parent = grown(this.#parent, size);
      this.#object = grown(this.#object, size);
      this.#option = grown(this.#option, size);
    }
    this.#parent[this.count] = parent;
    this.#object[this.count] = object;
    this.#option[this.count] = option;
    return this.count++;
  }

  path(node: number): [number, number][] {
    const pairs: [number, number][] = [];
    for (let n = node; n >= 0; n = this.#parent[n]!) pairs.push([this.#object[n]!, this.#option[n]!]);
    return pairs;
  }

  /** Drops what no live state descends from; rewrites `nodes` and returns the new number of `best`. */
  compact(nodes: Int32Array, count: number, best: number): number {
    const moved = new Int32Array(this.count);
    const mark = (node: number): void => {
      for (let n = node; n >= 0 && moved[n] === 0; n = this.#parent[n]!) moved[n] = 1;
    };
    for (let s = 0; s < count; s++) mark(nodes[s]!);
    mark(best);
    let kept = 0;
    // Parents precede their children, so one forward pass renumbers both.
    for (let n = 0; n < this.count; n++) {
      if (moved[n] === 0) continue;
      const parent = this.#parent[n]!;
      this.#parent[kept] = parent < 0 ? -1 : moved[parent]!;
      this.#object[kept] = this.#object[n]!;
      this.#option[kept] = this.#option[n]!;
      moved[n] = kept++;
    }
    this.count = kept;
    for (let s = 0; s < count; s++) if (nodes[s]! >= 0) nodes[s] = moved[nodes[s]!]!;
    return best < 0 ? best : moved[best]!;
  }
}
