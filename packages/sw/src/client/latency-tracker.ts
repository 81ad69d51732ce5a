/** This client's measurements of every source: the time to deliver, by size, and recent failures. */
import {
  hedgeAfterMs,
  LATENCY_UNKNOWN,
  observeLatency,
  SourceHealth,
  type LatencyEstimate,
  type SourceKind,
} from "@agarose/core/sources";

/** The name under which the time to a PoP's plan is tracked. */
export const popId = (name: string): string => `pop:${name}`;
/** The name under which a source's deliveries are tracked. */
export const sourceId = (kind: SourceKind, name: string): string => `${kind}:${name}`;

/** Upper ends of the size classes in bytes: a small shard takes a round trip, a large one mostly its transfer. */
const SIZE_CLASS_ENDS = [64 * 1024, 512 * 1024];
/** The estimate of a source that failed: slower than any other. */
export const FAILED: LatencyEstimate = { meanMs: 5_000, sdMs: 0 };
/** Measurements this old give way to a seed: a source that was slow once must not be avoided for ever. */
const OUTDATED_MS = 60_000;
/** A measurement counts as at most this many times the mean before it: a straggler says little about later requests. */
const WINSOR_FACTOR = 2;

/** Measurements kept to estimate when a source is late: 95 of 100 take less. */
const RECENT_MAX = 32;
const LATE_QUANTILE = 0.95;

interface Entry {
  /** By size class. */
  measured: (LatencyEstimate | undefined)[];
  /** Time of the latest measurement. */
  measuredMs: number;
  /** By size class, newest last. */
  readonly recent: number[][];
  seed?: LatencyEstimate;
}

/** Latency estimates by source, in milliseconds. */
export class LatencyTracker extends SourceHealth {
  readonly #entries = new Map<string, Entry>();
  readonly #heardMs = new Map<string, number>();

  /** Sets a PoP's estimate of `id`. It counts until the first measurement, which starts from it. */
  seed(id: string, estimate: LatencyEstimate): void {
    const entry = this.#entry(id);
    entry.seed = estimate;
    if (this.clock.now() - entry.measuredMs > OUTDATED_MS) entry.measured = [];
  }

  /** Records that `id` delivered `bytes` in `ms`, so that it is no longer avoided. */
  observe(id: string, ms: number, bytes = 0): void {
    this.heard(id);
    this.#take(id, ms, bytes);
    this.succeeded(id);
  }

  /** Records that `id` has sent something. */
  heard(id: string): void {
    this.#heardMs.set(id, this.clock.now());
  }

  /** Milliseconds since `id` sent something; Infinity if it never did. */
  silentMs(id: string): number {
    return this.clock.now() - (this.#heardMs.get(id) ?? Number.NEGATIVE_INFINITY);
  }

  /** `failed`, unless `id` has sent something since `sinceMs`: then it is slow with one thing, and not broken. */
  late(id: string, sinceMs: number): void {
    if (this.clock.now() - this.silentMs(id) < sinceMs) this.failed(id);
  }

  /** Drops the measurements and failures of `id`. */
  forget(id: string): void {
    this.#entries.delete(id);
    this.succeeded(id);
  }

  /** Drops everything. */
  override clear(): void {
    super.clear();
    this.#entries.clear();
  }

  /** Records that `id` has not delivered `bytes` after `ms`. It counts only if that is late. */
  observeAtLeast(id: string, ms: number, bytes: number): void {
    if (ms > hedgeAfterMs(this.estimate(id, bytes))) this.#take(id, ms, bytes);
  }

  /** The current estimate for `id` to deliver `bytes`. */
  estimate(id: string, bytes = 0): LatencyEstimate {
    if (this.isAvoided(id)) return FAILED;
    const entry = this.#entries.get(id);
    if (!entry) return LATENCY_UNKNOWN;
    const size = sizeClass(bytes);
    // A neighbouring size class is closer to the truth than a seed.
    const nearest = [0, -1, 1, -2, 2].map((step) => entry.measured[size + step]).find(Boolean);
    return nearest ?? entry.seed ?? LATENCY_UNKNOWN;
  }

  #take(id: string, ms: number, bytes: number): void {
    const entry = this.#entry(id);
    const size = sizeClass(bytes);
    const recent = (entry.recent[size] ??= []);
    recent.push(ms);
    if (recent.length > RECENT_MAX) recent.shift();
    const own = entry.measured[size];
    const estimate = observeLatency(own ?? entry.seed, own ? Math.min(ms, WINSOR_FACTOR * own.meanMs) : ms);
    entry.measuredMs = this.clock.now();
    const lateMs = recent.toSorted((a, b) => a - b)[Math.floor(LATE_QUANTILE * recent.length)]!;
    entry.measured[size] = recent.length < RECENT_MAX / 2 ? estimate : { ...estimate, lateMs };
  }

  #entry(id: string): Entry {
    const entry = this.#entries.get(id) ?? { measured: [], measuredMs: 0, recent: [] };
    this.#entries.set(id, entry);
    return entry;
  }
}

function sizeClass(bytes: number): number {
  return SIZE_CLASS_ENDS.filter((end) => end <= bytes).length;
}
