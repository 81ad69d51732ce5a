/** What is asked for: popularity that may shift or drift, and the requests drawn from it. */

import type { Random } from "../random.ts";
import type { PopularitySpec } from "./scenario.ts";

/** The true popularity over time. Ranks keep their probability; which object has which rank changes. */
export class PopularityProcess {
  /** Grows with every change. */
  version = 0;
  private readonly spec: PopularitySpec;
  private readonly random: Random;
  /** Object at each rank. */
  private readonly objectAt: number[];
  private readonly probability: Float64Array;
  private readonly cumulative: Float64Array;
  private shifts = 0;
  private swaps = 0;

  constructor(spec: PopularitySpec, objects: number, random: Random) {
    this.spec = spec;
    this.random = random;
    this.objectAt = random.shuffle(Array.from({ length: objects }, (_, i) => i));
    this.probability = rankProbabilities(spec, objects);
    this.cumulative = new Float64Array(objects);
    let sum = 0;
    for (let rank = 0; rank < objects; rank++) this.cumulative[rank] = sum += this.probability[rank]!;
  }

  /** Applies every shift and swap that is due; time never goes back. */
  advance(seconds: number): void {
    const { shiftEverySeconds, driftSwapsPerSecond } = this.spec;
    const shiftsDue = shiftEverySeconds > 0 ? Math.floor(seconds / shiftEverySeconds) : 0;
    for (; this.shifts < shiftsDue; this.shifts++, this.version++) this.random.shuffle(this.objectAt);
    const swapsDue = Math.floor(seconds * driftSwapsPerSecond);
    for (; this.swaps < swapsDue; this.swaps++, this.version++) this.swapTwo();
  }

  /** Draws the next object asked for. */
  draw(random: Random): number {
    const target = random.next() * this.cumulative.at(-1)!;
    let low = 0;
    let high = this.cumulative.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.cumulative[middle]! > target) high = middle;
      else low = middle + 1;
    }
    return this.objectAt[low]!;
  }

  /** The true probability of each object right now. */
  truth(): Float64Array {
    const truth = new Float64Array(this.objectAt.length);
    for (const [rank, object] of this.objectAt.entries()) truth[object] = this.probability[rank]!;
    return truth;
  }

  private swapTwo(): void {
    const a = this.random.integer(this.objectAt.length);
    const b = this.random.integer(this.objectAt.length);
    [this.objectAt[a], this.objectAt[b]] = [this.objectAt[b]!, this.objectAt[a]!];
  }
}

function rankProbabilities(spec: PopularitySpec, objects: number): Float64Array {
  const weights = new Float64Array(objects);
  const hot = spec.type === "hot-set" ? Math.max(1, Math.round(spec.fraction * objects)) : objects;
  for (let rank = 0; rank < objects; rank++) {
    if (spec.type === "zipf") weights[rank] = (rank + 1) ** -spec.exponent;
    else if (spec.type === "uniform") weights[rank] = 1;
    else weights[rank] = rank < hot ? spec.hotShare / hot : hot < objects ? (1 - spec.hotShare) / (objects - hot) : 0;
  }
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}
