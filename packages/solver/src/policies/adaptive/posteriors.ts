/**
 * Posteriors over request probabilities, one per place and expert. A place holds the belief about one object, or about
 * a crowd of objects that cannot be distinguished.
 */

import { grown } from "../../grown.ts";
import type { PopularityGrid } from "./popularity-grid.ts";
import type { SnapshotList, SnapshotReader } from "../../policy/snapshot.ts";

/** The posteriors of all places. */
export class Posteriors {
  /** Mean request probability, per place and expert. */
  mean: Float64Array;
  readonly #grid: PopularityGrid;
  readonly #placesMax: number;
  readonly #experts: number;
  readonly #levels: number;
  /** Per place, expert and level: probabilities that sum to 1 after multiplication by `scale`. */
  #share: Float32Array;
  #scale: Float64Array;
  /** Per place: the request up to which its posterior is up to date. */
  #updatedAt: Float64Array;
  readonly #arrival: Float64Array;

  /**
   * Makes room for `places` places, of which there will be `placesMax` at most. Place 0 begins as `prior`; the others
   * must be copied from a place that has begun.
   */
  constructor(
    grid: PopularityGrid,
    experts: number,
    { places, placesMax }: { readonly places: number; readonly placesMax: number },
    prior: Float64Array,
    state?: SnapshotReader,
  ) {
    this.#grid = grid;
    this.#placesMax = placesMax;
    this.#experts = experts;
    this.#levels = grid.levels.length;
    this.#arrival = new Float64Array(this.#levels);
    this.#updatedAt = state?.float64(places) ?? new Float64Array(places);
    this.mean = state?.float64(places * experts) ?? new Float64Array(places * experts);
    this.#scale = state?.float64(places * experts) ?? new Float64Array(places * experts);
    this.#share = state?.float32(places * experts * this.#levels) ?? new Float32Array(places * experts * this.#levels);
    if (!state) this.begin(0, 0, (out) => out.set(prior));
  }

  /** The lists that the constructor reads from a snapshot, for some places, which get new numbers 0, 1, .. */
  lists(places: readonly number[]): SnapshotList[] {
    const experts = this.#experts;
    const size = experts * this.#levels;
    const mean = new Float64Array(places.length * experts);
    const scale = new Float64Array(places.length * experts);
    for (const [i, place] of places.entries()) {
      mean.set(this.mean.subarray(place * experts, (place + 1) * experts), i * experts);
      scale.set(this.#scale.subarray(place * experts, (place + 1) * experts), i * experts);
    }
    // Most of a snapshot, and so not copied twice.
    const share = { parts: places.map((place) => this.#share.subarray(place * size, (place + 1) * size)) };
    return [Float64Array.from(places, (place) => this.#updatedAt[place]!), mean, scale, share];
  }

  /** Copies the belief of place `from` to place `to`. */
  copy(from: number, to: number): void {
    const experts = this.#experts;
    const size = experts * this.#levels;
    if (to >= this.#updatedAt.length) {
      const places = Math.min(2 * this.#updatedAt.length, this.#placesMax);
      this.#share = grown(this.#share, places * size);
      this.mean = grown(this.mean, places * experts);
      this.#scale = grown(this.#scale, places * experts);
      this.#updatedAt = grown(this.#updatedAt, places);
    }
    this.#share.copyWithin(to * size, from * size, (from + 1) * size);
    this.mean.copyWithin(to * experts, from * experts, (from + 1) * experts);
    this.#scale.copyWithin(to * experts, from * experts, (from + 1) * experts);
    this.#updatedAt[to] = this.#updatedAt[from]!;
  }

  /** Gives all experts the same belief about a place from `now` on; `write` fills in probabilities that sum to 1. */
  begin(place: number, now: number, write: (out: Float32Array) => void): void {
    const experts = this.#experts;
    const levels = this.#levels;
    const share = this.#share;
    const at = place * experts * levels;
    write(share.subarray(at, at + levels));
    for (let e = 1; e < experts; e++) share.copyWithin(at + e * levels, at, at + levels);
    let mean = 0;
    for (let g = 0; g < levels; g++) mean += share[at + g]! * this.#grid.levels[g]!;
    this.mean.fill(mean, place * experts, (place + 1) * experts);
    this.#scale.fill(1, place * experts, (place + 1) * experts);
    this.#updatedAt[place] = now;
  }

  /** Applies Bayes' rule for one request for the object of the place. */
  arrive(place: number): void {
    const { mean } = this;
    const share = this.#share;
    const scale = this.#scale;
    const experts = this.#experts;
    const levels = this.#levels;
    const q = this.#grid.levels;
    for (let e = 0; e < experts; e++) {
      const at = place * experts + e;
      const from = at * levels;
      const factor = scale[at]!;
      let sum = 0;
      let moment = 0;
      for (let g = 0; g < levels; g++) {
        const next = share[from + g]! * factor * q[g]!;
        share[from + g] = next;
        sum += next;
        moment += next * q[g]!;
      }
      mean[at] = moment / sum;
      scale[at] = 1 / sum;
    }
  }

  /**
   * Applies the requests for other objects until `now`: silence speaks against high probabilities. With the hazard's
   * chance the object changed on the way; then it was drawn from the prior, and silent for the rest.
   */
  advance(place: number, now: number, prior: Float64Array): void {
    const requests = this.#grid.stepWithin(now - this.#updatedAt[place]!);
    if (requests === 0) return;
    this.#updatedAt[place]! += requests;
    const { mean } = this;
    const share = this.#share;
    const scale = this.#scale;
    const arrival = this.#arrival;
    const experts = this.#experts;
    const levels = this.#levels;
    const { whole, rest, stay } = this.#grid.silenceOver(requests);
    const q = this.#grid.levels;
    for (let g = 0; g < levels; g++) arrival[g] = prior[g]! * rest[g]!;
    // Two experts at a time run faster, because each sum waits for its last addition.
    for (let e = 0; e < experts; e += 2) {
      const at = place * experts + e;
      const from = at * levels;
      const a0 = stay[e]! * scale[at]!;
      const a1 = stay[e + 1]! * scale[at + 1]!;
      // The approximate likelihood of the silence before the change, under the belief so far.
      const b0 = (1 - stay[e]!) * (0.5 + 0.5 / (1 + requests * mean[at]!));
      const b1 = (1 - stay[e + 1]!) * (0.5 + 0.5 / (1 + requests * mean[at + 1]!));
      let sum0 = 0;
      let sum1 = 0;
      let moment0 = 0;
      let moment1 = 0;
      for (let g = 0; g < levels; g++) {
        const silent = whole[g]!;
        const arrived = arrival[g]!;
        const next0 = a0 * share[from + g]! * silent + b0 * arrived;
        const next1 = a1 * share[from + levels + g]! * silent + b1 * arrived;
        share[from + g] = next0;
        share[from + levels + g] = next1;
        sum0 += next0;
        sum1 += next1;
        moment0 += next0 * q[g]!;
        moment1 += next1 * q[g]!;
      }
      mean[at] = moment0 / sum0;
      mean[at + 1] = moment1 / sum1;
      scale[at] = 1 / sum0;
      scale[at + 1] = 1 / sum1;
    }
  }

  /** Moves `prior` towards the belief about a place, with the experts in proportion to their weight. */
  teach(place: number, weight: Float64Array, rate: number, prior: Float64Array): void {
    const share = this.#share;
    const scale = this.#scale;
    const experts = this.#experts;
    const levels = this.#levels;
    for (let g = 0; g < levels; g++) prior[g]! *= 1 - rate;
    for (let e = 0; e < experts; e++) {
      const at = place * experts + e;
      const times = rate * weight[e]! * scale[at]!;
      for (let g = 0; g < levels; g++) prior[g]! += times * share[at * levels + g]!;
    }
  }
}
