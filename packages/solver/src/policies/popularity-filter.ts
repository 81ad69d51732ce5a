/**
 * The popularity estimate of the adaptive policy: for every object a posterior over its request probability, under
 * several assumptions of how popularity changes.
 *
 * Model: an object's probability q of being the next one asked for stays the same until, with a small chance at each
 * request (the hazard), it is drawn anew from the distribution of all objects. On a grid of q this is exact Bayesian
 * filtering of a hidden Markov model. The distribution of all objects is learned from the posteriors themselves (empirical
 * Bayes). Every hazard is one expert, weighted by how well it predicted the requests so far, with a little weight passed
 * round so that another one can rise (fixed share, Herbster & Warmuth 1998).
 *
 * Everything may also change at once. Trial filters that forgot all they knew a moment ago run beside the experts; when
 * one predicts clearly better than the experts do together, they all start over from it.
 *
 * The clock is the number of requests, and nothing is fitted to a workload.
 */

import type { SnapshotReader } from "./snapshot.ts";

/** Chance per request that an object's popularity is drawn anew, one expert each. */
const HAZARDS = [0, 1 / 30_000, 1 / 10_000, 1 / 4_000, 1 / 1_500, 1 / 400];
const EXPERTS = HAZARDS.length;
const TRIALS = 3;
const FILTERS = EXPERTS + TRIALS;
/** Each trial lives for so many requests, and they begin evenly spread. */
const TRIAL_REQUESTS = 240;
/** Log likelihood ratio at which a trial takes over: a trial would win by chance once in 160,000 times. */
const TRIAL_EVIDENCE = 12;
const GRID_RATIO = 1.3;
/** Share of weight that passes between experts per request. */
const SHARE = 1 / 2_000;
/** Requests between two advances of all posteriors, at least. */
const BLOCK = 16;
/** Requests over which the distribution of all objects is learned. */
const LEARNING = 500;
/** Some 40 MB of posteriors. */
const TRACKED_MAX = 20_000;

export class PopularityFilter {
  /** Estimated request probability of each object; 0 for one that is not told apart from the unseen ones. */
  readonly estimate: Float64Array;
  private readonly objects: number;
  private readonly trackedMax: number;
  private readonly grid: Float64Array;
  private readonly silence: Silence;
  /** Place of each object's state, 0 while it shares that of all unseen ones. */
  private readonly placeOf: Int32Array;
  private readonly tracked: number[];
  private readonly freePlaces: number[] = [];
  private posterior: Float32Array;
  /** Per place: the request up to which its posterior is brought forward. */
  private updatedAt: Float64Array;
  private readonly prior: Float64Array;
  private readonly weight: Float64Array;
  /** Sum of all objects' means under each filter: its normaliser. */
  private readonly mass: Float64Array;
  private readonly evidence: Float64Array;
  private readonly trialBegan: Float64Array;
  private now: number;
  private advancedAt: number;

  /** `trackedMax`: more objects are not told apart; the least popular ones return to the crowd of unseen ones. */
  constructor(objects: number, trackedMax = TRACKED_MAX, state?: SnapshotReader) {
    this.objects = objects;
    this.trackedMax = trackedMax;
    this.placeOf = new Int32Array(objects);
    const lowest = 0.02 / objects;
    const levels = Math.max(2, Math.ceil(Math.log(0.6 / lowest) / Math.log(GRID_RATIO)) + 1);
    this.grid = Float64Array.from({ length: levels }, (_, g) => Math.min(0.9, lowest * GRID_RATIO ** g));
    this.silence = new Silence(this.grid);
    const began = (_: unknown, t: number): number => (-t * TRIAL_REQUESTS) / TRIALS;
    // In the order of `lists`.
    this.estimate = state?.float64(objects) ?? new Float64Array(objects);
    this.prior = state?.float64(levels) ?? firstPrior(this.grid, objects);
    this.weight = state?.float64(EXPERTS) ?? new Float64Array(EXPERTS).fill(1 / EXPERTS);
    this.mass = state?.float64(FILTERS) ?? new Float64Array(FILTERS).fill(1);
    this.evidence = state?.float64(TRIALS) ?? new Float64Array(TRIALS);
    this.trialBegan = state?.float64(TRIALS) ?? Float64Array.from({ length: TRIALS }, began);
    [this.now, this.advancedAt] = (state?.float64(2) ?? [0, 0]) as [number, number];
    this.tracked = state?.objectList() ?? [];
    const places = this.tracked.length + 1;
    this.updatedAt = state?.float64(places) ?? new Float64Array(64);
    this.posterior = state?.float32(places * this.size) ?? new Float32Array(64 * this.size);
    for (const [i, object] of this.tracked.entries()) this.placeOf[object] = i + 1;
    if (!state) for (let f = 0; f < FILTERS; f++) this.posterior.set(this.prior, f * levels);
  }

  /** All it knows, for the constructor to read back; places are numbered anew. */
  lists(): (Float64Array | Float32Array | number[])[] {
    const places = [0, ...this.tracked.map((object) => this.placeOf[object]!)];
    const posterior = new Float32Array(places.length * this.size);
    for (const [i, place] of places.entries()) {
      posterior.set(this.posterior.subarray(place * this.size, (place + 1) * this.size), i * this.size);
    }
    return [
      this.estimate,
      this.prior,
      this.weight,
      this.mass,
      this.evidence,
      this.trialBegan,
      Float64Array.of(this.now, this.advancedAt),
      this.tracked,
      Float64Array.from(places, (place) => this.updatedAt[place]!),
      posterior,
    ];
  }

  /** Returns the object to the crowd of unseen ones. */
  forget(object: number): void {
    const place = this.placeOf[object]!;
    if (place === 0) return;
    this.tracked.splice(this.tracked.indexOf(object), 1);
    this.release(object);
  }

  /** Takes one request in. Returns true when all estimates were brought forward, not only this object's. */
  record(object: number): boolean {
    const place = this.placeOf[object]! || this.track(object);
    this.advanceOne(place);
    this.judge(place);
    const { posterior, grid } = this;
    for (let f = 0; f < FILTERS; f++) {
      const at = place * this.size + f * grid.length;
      let sum = 0;
      for (let g = 0; g < grid.length; g++) sum += posterior[at + g]! *= grid[g]!;
      for (let g = 0; g < grid.length; g++) posterior[at + g]! /= sum;
    }
    this.estimate[object] = this.mixedMean(place);
    this.now++;
    const isConvinced = this.evidence.some((evidence) => evidence > TRIAL_EVIDENCE);
    // Large catalogues advance less often, so that the work per request stays the same.
    if (!isConvinced && this.now - this.advancedAt < Math.max(BLOCK, this.tracked.length / 8)) return false;
    this.advance();
    return true;
  }

  /** Brings one object's estimate forward to now, without waiting for all of them. */
  touch(object: number): void {
    const place = this.placeOf[object]!;
    if (place === 0) return;
    this.advanceOne(place);
    this.estimate[object] = this.mixedMean(place);
  }

  /** Numbers in one object's state. */
  private get size(): number {
    return FILTERS * this.grid.length;
  }

  private track(object: number): number {
    const place = this.freePlaces.pop() ?? this.tracked.length + 1;
    if (place >= this.updatedAt.length) {
      this.posterior = grow(this.posterior);
      this.updatedAt = grow(this.updatedAt);
    }
    this.placeOf[object] = place;
    this.tracked.push(object);
    this.posterior.copyWithin(place * this.size, 0, this.size);
    this.updatedAt[place] = this.updatedAt[0]!;
    return place;
  }

  /** Experts gain weight, and trials evidence, by the probability they gave to what was asked for. */
  private judge(place: number): void {
    const { weight, evidence } = this;
    let together = 0;
    for (let e = 0; e < EXPERTS; e++) together += weight[e]! *= this.meanOf(place, e) / this.mass[e]!;
    for (let e = 0; e < EXPERTS; e++) weight[e] = (1 - SHARE) * (weight[e]! / together) + SHARE / EXPERTS;
    for (let t = 0; t < TRIALS; t++) {
      const trial = this.meanOf(place, EXPERTS + t) / this.mass[EXPERTS + t]!;
      evidence[t] = evidence[t]! + Math.log(trial / together);
    }
  }

  /** Brings all posteriors forward to now, lets trials begin and win, and learns the distribution of all objects. */
  private advance(): void {
    this.advanceOne(0);
    for (const object of this.tracked) this.advanceOne(this.placeOf[object]!);
    this.settleTrials();
    this.learnPrior(Math.min(1, (this.now - this.advancedAt) / LEARNING));
    this.advancedAt = this.now;
    this.refresh();
    if (this.tracked.length > this.trackedMax) this.forgetLeast();
  }

  /** Requests for others went by: silence speaks against high probabilities, and hazards mix the prior in. */
  private advanceOne(place: number): void {
    const requests = this.now - this.updatedAt[place]!;
    if (requests === 0) return;
    this.updatedAt[place] = this.now;
    const { posterior, prior } = this;
    const levels = prior.length;
    const silence = this.silence.over(requests);
    for (let f = 0; f < FILTERS; f++) {
      const at = place * this.size + f * levels;
      let sum = 0;
      for (let g = 0; g < levels; g++) sum += posterior[at + g]! *= silence[g]!;
      const stay = f < EXPERTS ? (1 - HAZARDS[f]!) ** requests : 1;
      const scale = stay / sum;
      for (let g = 0; g < levels; g++) posterior[at + g] = posterior[at + g]! * scale + (1 - stay) * prior[g]!;
    }
  }

  private settleTrials(): void {
    const { evidence, trialBegan } = this;
    const best = evidence.indexOf(Math.max(...evidence));
    if (evidence[best]! > TRIAL_EVIDENCE) {
      for (let f = 0; f < FILTERS; f++) if (f !== EXPERTS + best) this.copyFilter(EXPERTS + best, f);
      evidence.fill(0);
    }
    for (let t = 0; t < TRIALS; t++) {
      if (this.now - trialBegan[t]! < TRIAL_REQUESTS) continue;
      trialBegan[t] = this.now;
      evidence[t] = 0;
      this.copyFilter(-1, EXPERTS + t);
    }
  }

  /** Copies one filter's posteriors of all objects to another; from -1, the prior. */
  private copyFilter(from: number, to: number): void {
    const levels = this.prior.length;
    for (const place of [0, ...this.tracked.map((object) => this.placeOf[object]!)]) {
      const at = place * this.size;
      if (from < 0) this.posterior.set(this.prior, at + to * levels);
      else this.posterior.copyWithin(at + to * levels, at + from * levels, at + (from + 1) * levels);
    }
  }

  /** Moves the prior towards the average of all posteriors. */
  private learnPrior(rate: number): void {
    const { posterior, prior, weight } = this;
    const levels = prior.length;
    const sum = new Float64Array(levels);
    const unseen = this.objects - this.tracked.length;
    const add = (place: number, times: number): void => {
      for (let e = 0; e < EXPERTS; e++) {
        const at = place * this.size + e * levels;
        const share = weight[e]! * times;
        for (let g = 0; g < levels; g++) sum[g]! += share * posterior[at + g]!;
      }
    };
    add(0, unseen);
    for (const object of this.tracked) add(this.placeOf[object]!, 1);
    for (let g = 0; g < levels; g++) prior[g] = (1 - rate) * prior[g]! + (rate * sum[g]!) / this.objects;
  }

  private refresh(): void {
    const unseen = this.objects - this.tracked.length;
    for (let f = 0; f < FILTERS; f++) this.mass[f] = unseen * this.meanOf(0, f);
    for (const object of this.tracked) {
      const place = this.placeOf[object]!;
      for (let f = 0; f < FILTERS; f++) this.mass[f]! += this.meanOf(place, f);
      this.estimate[object] = this.mixedMean(place);
    }
  }

  private forgetLeast(): void {
    this.tracked.sort((a, b) => this.estimate[b]! - this.estimate[a]!);
    // A tenth at a time, so that this stays rare.
    for (const object of this.tracked.splice(Math.floor(0.9 * this.trackedMax))) this.release(object);
  }

  private release(object: number): void {
    this.freePlaces.push(this.placeOf[object]!);
    this.placeOf[object] = 0;
    this.estimate[object] = 0;
  }

  private mixedMean(place: number): number {
    let mixed = 0;
    for (let e = 0; e < EXPERTS; e++) mixed += this.weight[e]! * this.meanOf(place, e);
    return mixed;
  }

  private meanOf(place: number, filter: number): number {
    const { posterior, grid } = this;
    const at = place * this.size + filter * grid.length;
    let mean = 0;
    for (let g = 0; g < grid.length; g++) mean += posterior[at + g]! * grid[g]!;
    return mean;
  }
}

/** Probabilities that a run of requests never asks for an object, for each probability of the grid. */
class Silence {
  private readonly log: Float64Array;
  private readonly known = new Map<number, Float64Array>();

  constructor(grid: Float64Array) {
    this.log = grid.map((q) => Math.log1p(-q));
  }

  over(requests: number): Float64Array {
    let chance = this.known.get(requests);
    if (!chance) {
      if (this.known.size > 4096) this.known.clear();
      chance = this.log.map((log) => Math.exp(requests * log));
      this.known.set(requests, chance);
    }
    return chance;
  }
}

/**
 * Before anything is known: as many objects in each octave as a Zipf law of exponent 1 has, from a tail on that makes the
 * probabilities of all objects add up to 1; one object in twenty may be colder.
 */
function firstPrior(grid: Float64Array, objects: number): Float64Array {
  const shape = (tail: number): Float64Array => {
    const density = grid.map((q) => (q >= tail ? tail / q : 0));
    const sum = density.reduce((total, value) => total + value, 0);
    const cold = grid.filter((q) => q < tail).length;
    return density.map((value) => (value > 0 ? (0.95 * value) / sum : 0.05 / cold));
  };
  let prior = shape(grid[1]!);
  for (const tail of grid.subarray(1)) {
    prior = shape(tail);
    let mean = 0;
    for (let g = 0; g < grid.length; g++) mean += prior[g]! * grid[g]!;
    if (mean * objects >= 1) break;
  }
  return prior;
}

function grow<T extends Float64Array | Float32Array>(numbers: T): T {
  const grown = new (numbers.constructor as new (length: number) => T)(2 * numbers.length);
  grown.set(numbers);
  return grown;
}
