/**
 * The popularity estimate of the adaptive policy: for every object a posterior over its request probability, under
 * several assumptions of how popularity changes.
 *
 * Model: each request is for the object with probability q. At each request, with a small chance (the hazard), the
 * object draws another q from the distribution of all objects. On a grid of q this is Bayesian filtering of a hidden
 * Markov model (`posteriors.ts`), exact except within one step of silence. The filter learns the distribution of all
 * objects from the posteriors (empirical Bayes). Every hazard is one expert, weighted by how well it predicted the
 * requests so far. A little weight passes between experts, so that another one can rise (fixed share, Herbster &
 * Warmuth 1998).
 *
 * Everything may also change at once. Trials that started from nothing a moment ago (`restart-trial.ts`) run beside the
 * experts. When a trial predicts clearly better than the experts together, all experts continue from it.
 *
 * The clock is the number of requests, and no constant is fitted to a workload. The work per request does not grow with
 * the number of objects: a request updates the posterior of its object, and of a few others in turn.
 */

import { PopularityGrid } from "./popularity-grid.ts";
import { Posteriors } from "./posteriors.ts";
import { RestartTrial, TRIAL_REQUESTS } from "./restart-trial.ts";
import type { SnapshotList, SnapshotReader } from "../../policy/snapshot.ts";

/** Chance per request that an object draws another popularity: one expert each, an even number of them. */
const HAZARDS = [0, 1 / 15_000, 1 / 4_000, 1 / 1_000];
const EXPERTS = HAZARDS.length;
/** Their starts are evenly spread. */
const TRIALS = 3;
/** Log likelihood ratio at which a trial takes over; one trial in 8,000 reaches it by chance. */
const TRIAL_EVIDENCE = 9;
/** Share of weight that passes between experts per request. */
const SHARE = 1 / 2_000;
/** Requests in which the turn passes over all objects … */
const SWEEP_REQUESTS = 256;
/** … but at most this many objects have their turn at one request, and half as many where there are very many. */
const TURNS_MAX = 4;
const VERY_MANY = 4_096;
/** Turns over which the filter learns how far the other means are out of date. */
const LAG_TURNS = 1024;
/** Requests between two updates of the crowd of unseen objects. */
const UNSEEN_EVERY = 16;
/** Requests over which the filter learns the distribution of all objects. */
const LEARNING = 500;
/** Upper limit of `lasting`, in requests. */
const LASTING_MAX = 100_000;
/** Tracked objects by default: about 16 MB of posteriors. */
const TRACKED_MAX = 20_000;
/** The place of the unseen objects. */
const CROWD = 0;

/** Estimates the request probability of every object from the sequence of requests. */
export class PopularityFilter {
  /** Estimated request probability of each object; 0 for an object without requests. A live view. */
  readonly estimate: Float64Array;
  /** Called after an object's estimate has changed. */
  onEstimate: (object: number) => void = () => {};
  /** The objects with a posterior of their own; all others share that of the crowd. */
  readonly tracked: number[];
  readonly #objects: number;
  readonly #trackedMax: number;
  readonly #posteriors: Posteriors;
  /** Place of each object's posteriors. */
  readonly #placeOf: Int32Array;
  /** Index of each tracked object in `tracked`. */
  readonly #indexOf: Int32Array;
  readonly #freePlaces: number[] = [];
  readonly #prior: Float64Array;
  readonly #weight: Float64Array;
  /** Per expert the sum of all objects' means: its normaliser. */
  readonly #mass: Float64Array;
  /** Per expert: how much the mean of an object falls from one turn to the next. */
  readonly #lag: Float64Array;
  readonly #trials: RestartTrial[];
  #now: number;
  /** Index in `tracked` of the object whose turn is next. */
  #turn: number;

  /** Tracks at most about `trackedMax` objects; beyond that the least popular ones return to the crowd. */
  constructor(objects: number, trackedMax = TRACKED_MAX, state?: SnapshotReader) {
    this.#objects = objects;
    this.#trackedMax = trackedMax;
    this.#placeOf = new Int32Array(objects);
    this.#indexOf = new Int32Array(objects);
    const grid = new PopularityGrid(objects, HAZARDS);
    // In the order of `lists`.
    this.estimate = state?.float64(objects) ?? new Float64Array(objects);
    this.#prior = state?.float64(grid.levels.length) ?? grid.firstPrior(objects);
    this.#weight = state?.float64(EXPERTS) ?? new Float64Array(EXPERTS).fill(1 / EXPERTS);
    this.#lag = state?.float64(EXPERTS) ?? new Float64Array(EXPERTS);
    const mass = state?.float64(EXPERTS);
    [this.#now, this.#turn] = (state?.float64(2) ?? [0, 0]) as [number, number];
    this.tracked = state?.objectList() ?? [];
    for (const [i, object] of this.tracked.entries()) {
      this.#placeOf[object] = i + 1;
      this.#indexOf[object] = i;
    }
    // The crowd, and one more object than there may be before some return to it.
    const placesMax = Math.min(objects, trackedMax + 1) + 1;
    const places = state ? this.tracked.length + 1 : Math.min(64, placesMax);
    this.#posteriors = new Posteriors(grid, EXPERTS, { places, placesMax }, this.#prior, state);
    this.#mass = mass ?? this.#posteriors.mean.slice(0, EXPERTS).map((mean) => objects * mean);
    this.#trials = Array.from({ length: TRIALS }, (_, t) => {
      const began = -Math.floor((t * TRIAL_REQUESTS) / TRIALS);
      return new RestartTrial(grid, objects, began, this.#prior, state);
    });
  }

  /** The lists that the constructor reads from a snapshot. */
  lists(): SnapshotList[] {
    return [
      this.estimate,
      this.#prior,
      this.#weight,
      this.#lag,
      this.#mass,
      Float64Array.of(this.#now, this.#turn),
      this.tracked,
      ...this.#posteriors.lists([CROWD, ...this.tracked.map((object) => this.#placeOf[object]!)]),
      ...this.#trials.flatMap((trial) => trial.lists()),
    ];
  }

  /** Updates all estimates by one request. */
  record(object: number): void {
    const place = this.#placeOf[object]! || this.#track(object);
    this.#advance(place);
    this.#judge(place, object);
    this.#changeMass(place, -1);
    this.#posteriors.arrive(place);
    this.#changeMass(place, 1);
    this.#estimate(object, place);
    this.#now++;
    this.#takeTurns();
    for (const trial of this.#trials) {
      if (trial.evidence > TRIAL_EVIDENCE) this.#startOver(trial);
      else if (trial.isOver(this.#now)) trial.restart(this.#now, this.#prior);
    }
    if (this.tracked.length > this.#trackedMax) this.#forgetLeast();
  }

  /** Expected number of requests until an object's popularity changes, by the experts' weights; at most LASTING_MAX. */
  get lasting(): number {
    const hazard = this.#weight.reduce((sum, weight, e) => sum + weight * HAZARDS[e]!, 0);
    return 1 / (hazard + 1 / LASTING_MAX);
  }

  /** Brings one object's estimate up to date. */
  touch(object: number): void {
    const place = this.#placeOf[object]!;
    if (place === CROWD) return;
    this.#advance(place);
    this.#estimate(object, place);
  }

  /** Returns the object to the crowd. */
  forget(object: number): void {
    for (const trial of this.#trials) trial.forget(object);
    if (this.#placeOf[object] !== CROWD) {
      const last = this.tracked.pop()!;
      const index = this.#indexOf[object]!;
      if (last !== object) this.tracked[(this.#indexOf[last] = index)] = last;
      this.#release(object);
    }
    this.estimate[object] = 0;
    this.onEstimate(object);
  }

  #track(object: number): number {
    const place = this.#freePlaces.pop() ?? this.tracked.length + 1;
    this.#posteriors.copy(CROWD, place);
    this.#placeOf[object] = place;
    this.#indexOf[object] = this.tracked.push(object) - 1;
    return place;
  }

  /** Experts gain weight, and trials evidence, by the probability that they gave to the requested object. */
  #judge(place: number, object: number): void {
    const weight = this.#weight;
    const mass = this.#mass;
    const lag = this.#lag;
    const { mean } = this.#posteriors;
    // The means of the other objects are half a turn old on average.
    const stale = this.tracked.length / 2;
    let together = 0;
    for (let e = 0; e < EXPERTS; e++) {
      together += weight[e]! *= mean[place * EXPERTS + e]! / (mass[e]! - stale * lag[e]!);
    }
    for (let e = 0; e < EXPERTS; e++) weight[e] = (1 - SHARE) * (weight[e]! / together) + SHARE / EXPERTS;
    for (const trial of this.#trials) trial.evidence += Math.log(trial.record(object, this.#now) / together);
  }

  /** Updates the objects whose turn it is, and at intervals the crowd, and learns from them. */
  #takeTurns(): void {
    const { tracked } = this;
    const objects = this.#objects;
    const most = tracked.length > VERY_MANY ? TURNS_MAX / 2 : TURNS_MAX;
    const turns = Math.min(most, Math.ceil(tracked.length / SWEEP_REQUESTS));
    for (let i = 0; i < turns; i++) {
      if (this.#turn >= tracked.length) this.#turn = 0;
      this.#takeTurn(tracked[this.#turn++]!, i === 0);
    }
    if (this.#now % UNSEEN_EVERY !== 0) return;
    this.#advance(CROWD);
    const share = (objects - tracked.length) / objects;
    this.#posteriors.teach(CROWD, this.#weight, (share * UNSEEN_EVERY) / LEARNING, this.#prior);
  }

  #takeTurn(object: number, isTeaching: boolean): void {
    const { tracked } = this;
    const lag = this.#lag;
    const posteriors = this.#posteriors;
    const place = this.#placeOf[object]!;
    for (let e = 0; e < EXPERTS; e++) lag[e]! += (posteriors.mean[place * EXPERTS + e]! - lag[e]!) / LAG_TURNS;
    this.touch(object);
    for (let e = 0; e < EXPERTS; e++) lag[e]! -= posteriors.mean[place * EXPERTS + e]! / LAG_TURNS;
    if (isTeaching) posteriors.teach(place, this.#weight, tracked.length / this.#objects / LEARNING, this.#prior);
  }

  #advance(place: number): void {
    this.#changeMass(place, -1);
    this.#posteriors.advance(place, this.#now, this.#prior);
    this.#changeMass(place, 1);
  }

  #changeMass(place: number, sign: number): void {
    const { mean } = this.#posteriors;
    const times = sign * (place === CROWD ? this.#objects - this.tracked.length : 1);
    for (let e = 0; e < EXPERTS; e++) this.#mass[e]! += times * mean[place * EXPERTS + e]!;
  }

  /** All experts continue from the belief of a trial, and all trials restart. */
  #startOver(trial: RestartTrial): void {
    this.#mass.fill(0);
    for (const object of [-1, ...this.tracked]) {
      const place = object < 0 ? CROWD : this.#placeOf[object]!;
      this.#posteriors.begin(place, this.#now, (out) => trial.posterior(object, this.#now, out));
      this.#changeMass(place, 1);
      if (object >= 0) this.#estimate(object, place);
    }
    for (const other of this.#trials) other.restart(this.#now, this.#prior);
  }

  #forgetLeast(): void {
    this.tracked.sort((a, b) => this.estimate[b]! - this.estimate[a]!);
    // A tenth at a time keeps this rare.
    for (const object of this.tracked.splice(Math.floor(0.9 * this.#trackedMax))) this.#release(object);
    for (const [i, object] of this.tracked.entries()) this.#indexOf[object] = i;
  }

  #release(object: number): void {
    const { mean } = this.#posteriors;
    const place = this.#placeOf[object]!;
    for (let e = 0; e < EXPERTS; e++) this.#mass[e]! += mean[e]! - mean[place * EXPERTS + e]!;
    this.#freePlaces.push(place);
    this.#placeOf[object] = CROWD;
    this.#estimate(object, CROWD);
  }

  /** Takes the mean of the place's posteriors, by the experts' weights, as the object's estimate. */
  #estimate(object: number, place: number): void {
    const { mean } = this.#posteriors;
    let mixed = 0;
    for (let e = 0; e < EXPERTS; e++) mixed += this.#weight[e]! * mean[place * EXPERTS + e]!;
    this.estimate[object] = mixed;
    this.onEstimate(object);
  }
}
