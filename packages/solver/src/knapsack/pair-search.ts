/**
 * Looks for a good solution among very many, without a proof. One sweep over two sorted lists of partial solutions over
 * disjoint objects finds the best pair that fits (Horowitz & Sahni 1974). It finds the exact fill that strongly
 * correlated and byte-sized instances need, and with it a gap small enough for the proof.
 */
import type { Core } from "./core.ts";
import { CoreSearch, type SearchLimits, type SearchResult } from "./core-search.ts";

/** Partial solutions by rising weight and rising value. */
interface Partials {
  readonly count: number;
  readonly weight: ArrayLike<number>;
  readonly value: ArrayLike<number>;
  exchangesOf(index: number): [number, number][];
}

/** Entries of the core that the beams combine; the others take part by single exchanges. */
const BEAM_ENTRIES = 96;

/** Returns the best of three pairings; `exchanges` is undefined when none beats `gainKnown`. */
export function searchPairs(
  core: Core,
  slope: number,
  room: number,
  gainKnown: number,
  step: number,
  limits: SearchLimits,
): SearchResult {
  const beam = (parity: number): Partials => {
    const entries = placesOf(parity, Math.min(BEAM_ENTRIES, core.object.length));
    return beamPartials(pickEntries(core, entries), slope, room, gainKnown, step, limits);
  };
  const beams = [beam(0), beam(1)] as const;
  let best = bestPair(beams[0], beams[1], room, gainKnown);
  if (best.gain + step > limits.gainMax || core.object.length <= BEAM_ENTRIES) return best;
  const even = singlePartials(pickEntries(core, placesOf(0, core.object.length)));
  const odd = singlePartials(pickEntries(core, placesOf(1, core.object.length)));
  const pairings = [
    [beams[0], odd],
    [even, odd],
  ] as const;
  for (const [left, right] of pairings) {
    const found = bestPair(left, right, room, best.gain);
    if (found.exchanges) best = found;
  }
  return best;
}

function bestPair(left: Partials, right: Partials, room: number, gainKnown: number): SearchResult {
  let [gain, a, b] = [gainKnown, -1, -1];
  let r = right.count - 1;
  // Within a list both weight and value rise, so the heaviest partner that fits is the best one.
  for (let l = 0; l < left.count; l++) {
    while (r >= 0 && left.weight[l]! + right.weight[r]! > room) r--;
    if (r < 0) break;
    const value = left.value[l]! + right.value[r]!;
    if (value > gain) [gain, a, b] = [value, l, r];
  }
  const exchanges = a < 0 ? undefined : [...left.exchangesOf(a), ...right.exchangesOf(b)];
  return { gain, gainBound: Infinity, exchanges };
}

/** Combinations of exchanges, the best bounds of each round. */
function beamPartials(
  core: Core,
  slope: number,
  room: number,
  gainKnown: number,
  step: number,
  limits: SearchLimits,
): Partials {
  // The partner may still bring anything, so only the break slope itself bounds a state.
  const flat = (): Float64Array => new Float64Array(core.object.length + 1).fill(slope);
  const search = new CoreSearch(core, room, gainKnown, step, limits, [flat(), flat()]);
  search.run();
  const { weight, value } = search.states;
  return { count: search.count, weight, value, exchangesOf: (index) => search.exchangesOf(index) };
}

/** Nothing, or exactly one exchange; those that are heavier but not worth more are omitted. */
function singlePartials(core: Core): Partials {
  const options = core.option.length;
  const order = new Int32Array(options + 1);
  for (let e = 0; e <= options; e++) order[e] = e - 1;
  const weightOf = (e: number): number => (e < 0 ? 0 : core.weight[e]!);
  const valueOf = (e: number): number => (e < 0 ? 0 : core.value[e]!);
  order.sort((x, y) => weightOf(x) - weightOf(y) || valueOf(y) - valueOf(x));
  const kept: number[] = [];
  let valueMax = -Infinity;
  for (const e of order) {
    if (valueOf(e) <= valueMax) continue;
    valueMax = valueOf(e);
    kept.push(e);
  }
  return {
    count: kept.length,
    weight: Float64Array.from(kept, weightOf),
    value: Float64Array.from(kept, valueOf),
    exchangesOf: (index) => {
      const e = kept[index]!;
      return e < 0 ? [] : [[core.object[entryOf(core, e)]!, core.option[e]!]];
    },
  };
}

function entryOf(core: Core, option: number): number {
  let entry = 0;
  while (core.first[entry + 1]! <= option) entry++;
  return entry;
}

/** Even or odd places below `end`. */
function placesOf(parity: number, end: number): number[] {
  const places: number[] = [];
  for (let c = parity; c < end; c += 2) places.push(c);
  return places;
}

function pickEntries(core: Core, places: number[]): Core {
  const pick = (numbers: Float64Array | Int32Array): number[] => {
    const picked: number[] = [];
    for (const c of places) for (let e = core.first[c]!; e < core.first[c + 1]!; e++) picked.push(numbers[e]!);
    return picked;
  };
  const first = [0];
  for (const c of places) first.push(first.at(-1)! + core.first[c + 1]! - core.first[c]!);
  return {
    object: Int32Array.from(places, (c) => core.object[c]!),
    first: Int32Array.from(first),
    lossMin: Float64Array.from(places, (c) => core.lossMin[c]!),
    option: Int32Array.from(pick(core.option)),
    weight: Float64Array.from(pick(core.weight)),
    value: Float64Array.from(pick(core.value)),
    loss: Float64Array.from(pick(core.loss)),
  };
}
