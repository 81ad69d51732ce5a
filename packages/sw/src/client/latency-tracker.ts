/**
 * What this client has measured of every source: time to deliver, by size of what is delivered, and who failed lately.
 */
import { LATENCY_UNKNOWN, observeLatency, type Clock, type LatencyEstimate } from "@agarose/core";

/** Upper ends of the size classes in bytes: a small shard takes a round trip, a large one mostly its transfer. */
const SIZE_CLASS_ENDS = [64 * 1024, 512 * 1024];
/** What is believed of a source that failed: slower than any other. */
export const FAILED: LatencyEstimate = { meanMs: 5_000, sdMs: 0 };
const AVOID_MS_MIN = 5_000;
const AVOID_MS_MAX = 60_000;
/** Where nothing was measured for so long, somebody else's belief counts again: who was slow once is not avoided for ever. */
const OUTDATED_MS = 60_000;
/** One measurement counts as at most so many times the mean of those before: a straggler says little of the others. */
const WINSOR_FACTOR = 2;

/** So many measurements are kept, for the time after which a source is late: 95 of 100 take less. */
const RECENT_MAX = 32;
const LATE_QUANTILE = 0.95;

interface Entry {
  /** By size class. */
  measured: (LatencyEstimate | undefined)[];
  /** When. */
  measuredMs: number;
  /** By size class, newest last. */
  readonly recent: number[][];
  seed: LatencyEstimate | undefined;
  failures: number;
  avoidUntilMs: number;
}

export class LatencyBook {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What somebody nearby believes; counts until the first measurement of our own, and is where that starts from. */
  seed(id: string, estimate: LatencyEstimate): void {
    const entry = this.#entry(id);
    entry.seed = estimate;
    if (this.#clock.now() - entry.measuredMs > OUTDATED_MS) entry.measured = [];
  }

  /** `id` delivered `bytes` in `ms`. */
  observe(id: string, ms: number, bytes = 0): void {
    const entry = this.#take(id, ms, bytes);
    entry.failures = 0;
    entry.avoidUntilMs = 0;
  }

  /** Drops what was measured of `id`, its failures too. */
  forget(id: string): void {
    this.#entries.delete(id);
  }

  /** Drops everything. */
  clear(): void {
    this.#entries.clear();
  }

  /** `id` has not delivered `bytes` yet after `ms`: worth noting where that is longer than it was believed to take. */
  observeAtLeast(id: string, ms: number, bytes = 0): void {
    if (ms > this.estimate(id, bytes).meanMs) this.#take(id, ms, bytes);
  }

  /** `id` failed: it is asked last for a while, twice as long each time in a row. Many requests fail at once as one. */
  failed(id: string): void {
    if (this.isAvoided(id)) return;
    const entry = this.#entry(id);
    const avoidMs = Math.min(AVOID_MS_MAX, AVOID_MS_MIN * 2 ** entry.failures++);
    entry.avoidUntilMs = this.#clock.now() + avoidMs;
  }

  /** Whether `id` failed lately, and has not answered since. */
  isAvoided(id: string): boolean {
    return this.#clock.now() < (this.#entries.get(id)?.avoidUntilMs ?? 0);
  }

  /** What is believed now of `id` delivering `bytes`. */
  estimate(id: string, bytes = 0): LatencyEstimate {
    const entry = this.#entries.get(id);
    if (!entry) return LATENCY_UNKNOWN;
    if (this.isAvoided(id)) return FAILED;
    const size = sizeClass(bytes);
    // A neighbouring class is closer to the truth than somebody else's seed.
    const nearest = [0, -1, 1, -2, 2].map((step) => entry.measured[size + step]).find(Boolean);
    return nearest ?? entry.seed ?? LATENCY_UNKNOWN;
  }

  #take(id: string, ms: number, bytes: number): Entry {
    const entry = this.#entry(id);
    const size = sizeClass(bytes);
    const recent = (entry.recent[size] ??= []);
    recent.push(ms);
    if (recent.length > RECENT_MAX) recent.shift();
    const own = entry.measured[size];
    const estimate = observeLatency(own ?? entry.seed, own ? Math.min(ms, WINSOR_FACTOR * own.meanMs) : ms);
    entry.measuredMs = this.#clock.now();
    const lateMs = recent.toSorted((a, b) => a - b)[Math.floor(LATE_QUANTILE * recent.length)]!;
    entry.measured[size] = recent.length < RECENT_MAX / 2 ? estimate : { ...estimate, lateMs };
    return entry;
  }

  #entry(id: string): Entry {
    let entry = this.#entries.get(id);
    if (!entry) {
      entry = { measured: [], measuredMs: 0, recent: [], seed: undefined, failures: 0, avoidUntilMs: 0 };
      this.#entries.set(id, entry);
    }
    return entry;
  }
}

function sizeClass(bytes: number): number {
  return SIZE_CLASS_ENDS.filter((end) => end <= bytes).length;
}
