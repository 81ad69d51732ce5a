/**
 * A filter that started from nothing a moment ago. While popularity stays the same, an object's posterior depends only
 * on the number of its requests since then, so a trial is a list of counts.
 */
import type { PopularityGrid } from "./popularity-grid.ts";
import type { SnapshotReader } from "../../policy/snapshot.ts";

/** Requests until a trial ends. */
export const TRIAL_REQUESTS = 240;
/** Requests between two sums over all objects. */
const SUM_EVERY = 16;

/** One trial. */
export class RestartTrial {
  /** Log likelihood ratio of the requests, of the trial against the experts. */
  evidence: number;
  #began: number;
  readonly #grid: PopularityGrid;
  readonly #objects: number;
  readonly #counts: Map<number, number>;
  /** How many objects had 0, 1, .. requests. */
  readonly #withCount: number[];
  readonly #prior: Float64Array;
  /** Sum of all objects' means: the normaliser. */
  #mass: number;

  constructor(grid: PopularityGrid, objects: number, began: number, prior: Float64Array, state?: SnapshotReader) {
    this.#grid = grid;
    this.#objects = objects;
    [this.evidence, this.#began, this.#mass] = (state?.float64(3) ?? [0, began, 1]) as [number, number, number];
    this.#prior = state?.float64(prior.length) ?? prior.slice();
    const seen = state?.objectList() ?? [];
    const times = state?.int32(seen.length) ?? [];
    this.#counts = new Map(seen.map((object, i) => [object, times[i]!]));
    this.#withCount = [objects - seen.length];
    for (const count of times) this.#withCount[count] = (this.#withCount[count] ?? 0) + 1;
  }

  /** Counts a request for the object; returns the probability that the trial gave to it. */
  record(object: number, now: number): number {
    const count = this.#counts.get(object) ?? 0;
    if ((now - this.#began) % SUM_EVERY === 0) this.#mass = this.#sumOfMeans(now);
    const chance = this.#mean(count, now) / this.#mass;
    this.#counts.set(object, count + 1);
    this.#withCount[count]!--;
    this.#withCount[count + 1] = (this.#withCount[count + 1] ?? 0) + 1;
    return chance;
  }

  /** Whether the trial has reached its end. */
  isOver(now: number): boolean {
    return now - this.#began >= TRIAL_REQUESTS;
  }

  /** Starts again from nothing. */
  restart(now: number, prior: Float64Array): void {
    this.#began = now;
    this.evidence = 0;
    this.#counts.clear();
    this.#withCount.length = 0;
    this.#withCount.push(this.#objects);
    this.#prior.set(prior);
  }

  forget(object: number): void {
    const count = this.#counts.get(object);
    if (count === undefined) return;
    this.#counts.delete(object);
    this.#withCount[count]!--;
    this.#withCount[0]!++;
  }

  /** Writes an object's posterior into `out`. */
  posterior(object: number, now: number, out: Float32Array): void {
    const { whole } = this.#silence(now);
    const odds = this.#grid.oddsPower(this.#counts.get(object) ?? 0);
    let sum = 0;
    for (let g = 0; g < whole.length; g++) sum += this.#prior[g]! * whole[g]! * odds[g]!;
    for (let g = 0; g < whole.length; g++) out[g] = (this.#prior[g]! * whole[g]! * odds[g]!) / sum;
  }

  /** The lists that the constructor reads from a snapshot. */
  lists(): (Float64Array | number[])[] {
    const numbers = Float64Array.of(this.evidence, this.#began, this.#mass);
    return [numbers, this.#prior, [...this.#counts.keys()], [...this.#counts.values()]];
  }

  #silence(now: number): { readonly whole: Float64Array } {
    return this.#grid.silenceOver(now - this.#began);
  }

  #mean(count: number, now: number): number {
    const prior = this.#prior;
    const { levels } = this.#grid;
    const { whole } = this.#silence(now);
    const odds = this.#grid.oddsPower(count);
    let sum = 0;
    let moment = 0;
    for (let g = 0; g < levels.length; g++) {
      const share = prior[g]! * whole[g]! * odds[g]!;
      sum += share;
      moment += share * levels[g]!;
    }
    return moment / sum;
  }

  #sumOfMeans(now: number): number {
    let sum = 0;
    for (const [count, times] of this.#withCount.entries()) if (times > 0) sum += times * this.#mean(count, now);
    return sum;
  }
}
