/**
 * The grid of request probabilities on which the popularity filter keeps its posteriors, and the likelihood of silence
 * on it.
 */

/** Of one level to the one below, where that gives no more levels than these: those of 4,096 objects. */
const RATIO = 1.3;
const LEVELS_MAX = 46;
/**
 * Runs up to this length are exact. Longer ones are cut to this many lengths per octave, so that there are few tables.
 */
const EXACT_REQUESTS = 256;

/** Levels of request probability, and cached tables of likelihoods on them. */
export class PopularityGrid {
  /** Request probabilities, ascending. */
  readonly levels: Float64Array;
  readonly #hazards: readonly number[];
  readonly #logSilence: Float64Array;
  readonly #silences = new Map<number, SilenceLikelihood>();
  readonly #odds: Float64Array[];

  constructor(objects: number, hazards: readonly number[]) {
    this.#hazards = hazards;
    const lowest = 0.02 / objects;
    const span = Math.log(0.6 / lowest);
    const ratio = Math.max(RATIO, Math.exp(span / (LEVELS_MAX - 1)));
    const count = Math.max(2, Math.ceil(span / Math.log(ratio)) + 1);
    this.levels = Float64Array.from({ length: count }, (_, g) => Math.min(0.9, lowest * ratio ** g));
    this.#logSilence = this.levels.map((q) => Math.log1p(-q));
    this.#odds = [new Float64Array(count).fill(1)];
  }

  /**
   * Returns the likelihood of `requests` requests for other objects. Each length costs a table, so ask for lengths of
   * `stepWithin`.
   */
  silenceOver(requests: number): SilenceLikelihood {
    let silence = this.#silences.get(requests);
    if (!silence) {
      silence = this.#compute(requests);
      this.#silences.set(requests, silence);
    }
    return silence;
  }

  /** Returns the longest run with a table that is not longer than `requests`; it is at most 1% shorter. */
  stepWithin(requests: number): number {
    if (requests < EXACT_REQUESTS) return requests;
    const unit = 2 ** (Math.floor(Math.log2(requests)) - Math.log2(EXACT_REQUESTS / 2));
    return requests - (requests % unit);
  }

  /** (q / (1 - q))^count for every level: with the silence of n requests, the likelihood of `count` among them. */
  oddsPower(count: number): Float64Array {
    while (this.#odds.length <= count) {
      const last = this.#odds.at(-1)!;
      this.#odds.push(this.levels.map((q, g) => (last[g]! * q) / (1 - q)));
    }
    return this.#odds[count]!;
  }

  /**
   * Returns the prior before any request: each octave holds as many objects as under a Zipf law of exponent 1. The tail
   * is set so that the probabilities of all objects sum to 1; one object in twenty may be colder.
   */
  firstPrior(objects: number): Float64Array {
    const { levels } = this;
    const shape = (tail: number): Float64Array => {
      const density = levels.map((q) => (q >= tail ? tail / q : 0));
      const sum = density.reduce((total, value) => total + value, 0);
      const cold = levels.filter((q) => q < tail).length;
      return density.map((value) => (value > 0 ? (0.95 * value) / sum : 0.05 / cold));
    };
    let prior = shape(levels[1]!);
    for (const tail of levels.subarray(1)) {
      prior = shape(tail);
      if (prior.reduce((mean, share, g) => mean + share * levels[g]!, 0) * objects >= 1) break;
    }
    return prior;
  }

  #compute(requests: number): SilenceLikelihood {
    const whole = this.#logSilence.map((log) => Math.exp(requests * log));
    const rest = whole.map((chance, g) => (1 - chance) / (requests * this.levels[g]!));
    const stay = Float64Array.from(this.#hazards, (hazard) => (1 - hazard) ** requests);
    return { whole, rest, stay };
  }
}

/** Likelihood of a run of requests for other objects. */
interface SilenceLikelihood {
  /** For each level, the probability of silence over the whole run. */
  readonly whole: Float64Array;
  /** For each level, the probability of silence over the rest of the run from a moment anywhere in it. */
  readonly rest: Float64Array;
  /** For each hazard, the probability that nothing changed in the run. */
  readonly stay: Float64Array;
}
