/** The requests: drawn from a popularity that may shift or drift, or replayed from a log. */
import { cumulate, sampleIndex, type Random } from "../random.ts";
import type { Trace } from "../traces/trace.ts";
import type { PopularitySpec, Scenario } from "./scenario/scenario.ts";

/** A sequence of requests. After `next` the fields describe the request it moved to. */
export interface Workload {
  readonly total: number;
  readonly seconds: number;
  readonly pop: number;
  readonly object: number;
  /** Grows when the true popularity changes. */
  readonly version: number;
  /** Moves to the next request; false when there is none. */
  next(): boolean;
  /** The true probability of each object now; only the oracle may ask. */
  truth(): Float64Array;
}

/** Requests drawn from the scenario's popularity, evenly spaced in time at each PoP by its demand. */
export class GeneratedWorkload implements Workload {
  readonly total: number;
  seconds = 0;
  pop = -1;
  object = -1;
  readonly #process: PopularityProcess;
  readonly #random: Random[];
  readonly #gap: number[];
  readonly #left: number[];
  readonly #due: number[];

  constructor({ pops, requests, popularity, objects }: Scenario, random: Random) {
    this.#process = new PopularityProcess(popularity, objects.count, random.fork(2));
    this.#random = pops.map((_, pop) => random.fork(100 + pop));
    this.#gap = pops.map((pop) => 1 / (requests.perSecond * pop.demand));
    this.#left = pops.map((pop) => Math.max(1, Math.round(requests.count * pop.demand)));
    this.#due = this.#gap.map((gap) => gap / 2);
    this.total = this.#left.reduce((sum, count) => sum + count, 0);
  }

  get version(): number {
    return this.#process.version;
  }

  next(): boolean {
    let pop = -1;
    for (let p = 0; p < this.#due.length; p++) {
      if (this.#left[p]! > 0 && (pop < 0 || this.#due[p]! < this.#due[pop]!)) pop = p;
    }
    if (pop < 0) return false;
    this.pop = pop;
    this.seconds = this.#due[pop]!;
    this.#due[pop]! += this.#gap[pop]!;
    this.#left[pop]!--;
    this.#process.advance(this.seconds);
    this.object = this.#process.sample(this.#random[pop]!);
    return true;
  }

  truth(): Float64Array {
    return this.#process.truth();
  }
}

/** The oracle of a log knows the requests of each object within windows of this many periods. */
const WINDOW_PERIODS = 10;

/**
 * A replayed log. Reads go to the PoP that the log names, or to all PoPs in turn by their demand where it names none.
 */
export class TraceWorkload implements Workload {
  readonly total: number;
  seconds = 0;
  pop = -1;
  object = -1;
  version = 0;
  readonly #trace: Trace;
  /** The scenario's PoP of each PoP in the log; -1 where it has none of that name. */
  readonly #popOf: readonly number[];
  readonly #demand: number[];
  readonly #credit: number[];
  readonly #window: number;
  #at = -1;

  constructor({ pops, periodSeconds }: Scenario, trace: Trace) {
    this.#trace = trace;
    this.total = trace.object.length;
    const names = pops.map(({ name }) => name.toLowerCase());
    this.#popOf = trace.pops.map((name) => names.indexOf(name.toLowerCase()));
    const sum = pops.reduce((total, pop) => total + pop.demand, 0);
    this.#demand = pops.map((pop) => pop.demand / sum);
    this.#credit = pops.map(() => 0);
    this.#window = WINDOW_PERIODS * periodSeconds;
  }

  next(): boolean {
    if (++this.#at >= this.total) return false;
    const { seconds, object, pop } = this.#trace;
    this.seconds = seconds[this.#at]!;
    this.object = object[this.#at]!;
    this.version = Math.floor(this.seconds / this.#window);
    const named = this.#popOf[pop[this.#at]!] ?? -1;
    this.pop = named >= 0 ? named : this.#takeTurn();
    return true;
  }

  truth(): Float64Array {
    const { seconds, object } = this.#trace;
    const counts = new Float64Array(this.#trace.keys.length);
    const end = (this.version + 1) * this.#window;
    for (let i = this.#at; i < this.total && seconds[i]! < end; i++) counts[object[i]!]! += 1;
    return counts;
  }

  #takeTurn(): number {
    for (let p = 0; p < this.#credit.length; p++) this.#credit[p]! += this.#demand[p]!;
    const pop = this.#credit.indexOf(Math.max(...this.#credit));
    this.#credit[pop]! -= 1;
    return pop;
  }
}

/** The true popularity over time. Each rank keeps its probability; the object at each rank changes. */
export class PopularityProcess {
  /** Grows with every change. */
  version = 0;
  readonly #spec: PopularitySpec;
  readonly #random: Random;
  readonly #objectAt: number[];
  readonly #probability: Float64Array;
  readonly #cumulative: Float64Array;
  #shifts = 0;
  #swaps = 0;

  constructor(spec: PopularitySpec, objects: number, random: Random) {
    this.#spec = spec;
    this.#random = random;
    this.#objectAt = random.shuffle(Array.from({ length: objects }, (_, i) => i));
    this.#probability = rankProbabilities(spec, objects);
    this.#cumulative = cumulate(this.#probability);
  }

  /** Applies every shift and swap that is due; time never goes back. */
  advance(seconds: number): void {
    const { shiftEverySeconds, driftSwapsPerSecond } = this.#spec;
    const shiftsDue = shiftEverySeconds > 0 ? Math.floor(seconds / shiftEverySeconds) : 0;
    for (; this.#shifts < shiftsDue; this.#shifts++, this.version++) this.#random.shuffle(this.#objectAt);
    const swapsDue = Math.floor(seconds * driftSwapsPerSecond);
    for (; this.#swaps < swapsDue; this.#swaps++, this.version++) this.#swapTwo();
  }

  sample(random: Random): number {
    return this.#objectAt[sampleIndex(this.#cumulative, random)]!;
  }

  /** The true probability of each object now. */
  truth(): Float64Array {
    const truth = new Float64Array(this.#objectAt.length);
    for (const [rank, object] of this.#objectAt.entries()) truth[object] = this.#probability[rank]!;
    return truth;
  }

  #swapTwo(): void {
    const a = this.#random.integer(this.#objectAt.length);
    const b = this.#random.integer(this.#objectAt.length);
    [this.#objectAt[a], this.#objectAt[b]] = [this.#objectAt[b]!, this.#objectAt[a]!];
  }
}

/** Returns the probability of the object at each rank: `objects` numbers that add up to 1, the largest first. */
export function rankProbabilities(spec: PopularitySpec, objects: number): Float64Array {
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
