/**
 * The online scheme of Liu et al. (Algorithm 3): each request divides the room of the requested object and of the
 * cached objects of least value per chunk among them again. The discounting rate estimator gives popularity (section
 * V-A).
 *
 * Departures: our exact knapsack solves the small problem of lines 11-12. It finds the same optimum as Algorithms 1-2,
 * against which a test compares it. Room is counted in weight, so that objects may differ in size.
 */
import { configureSome } from "../../policy/configure.ts";
import { keptObjects, type Policy, type PolicyCache } from "../../policy/policy.ts";
import { packSnapshot, type SnapshotReader } from "../../policy/snapshot.ts";

/** How fast counts fade: every `everySeconds` seconds they are multiplied by `decay` (0 to 1). */
interface OnlineSettings {
  readonly decay: number;
  readonly everySeconds: number;
}

/** Creates the policy for `cache`, as new or from a snapshot. */
export function online(cache: PolicyCache, settings: OnlineSettings, state?: SnapshotReader): Policy {
  return new OnlinePolicy(cache, settings, state);
}

class OnlinePolicy implements Policy {
  readonly #cache: PolicyCache;
  readonly #settings: OnlineSettings;
  /** Per object: its requests, discounted. */
  readonly #counters: Float64Array;
  readonly #cached: Set<number>;
  /** Decay steps applied so far. */
  #steps: number;

  constructor(cache: PolicyCache, settings: OnlineSettings, state?: SnapshotReader) {
    this.#cache = cache;
    this.#settings = settings;
    // The order of reading is that of `snapshot`.
    this.#counters = state?.float64(cache.objects) ?? new Float64Array(cache.objects);
    this.#cached = new Set([...(state?.objectList() ?? []), ...keptObjects(cache)]);
    this.#steps = state?.float64(1)[0] ?? 0;
  }

  onRequest(object: number, seconds: number): void {
    const cache = this.#cache;
    this.#decayUntil(seconds);
    this.#counters[object]! += 1;
    const k = cache.kOf(object);
    const weight = cache.chunkWeight[object]!;
    if (cache.countOf(object) >= k || weight > cache.capacity) return;
    if (cache.used + (k - cache.countOf(object)) * weight <= cache.capacity) {
      cache.keep(object, k);
      this.#cached.add(object);
    } else this.#divide(this.#chooseCandidates(object));
  }

  forget(object: number): void {
    this.#counters[object] = 0;
    this.#cached.delete(object);
  }

  snapshot(): Uint8Array {
    return packSnapshot("online", this.#cache.objects, [
      this.#counters,
      [...this.#cached],
      Float64Array.of(this.#steps),
    ]);
  }

  #decayUntil(seconds: number): void {
    const counters = this.#counters;
    const due = Math.floor(seconds / this.#settings.everySeconds);
    if (due === this.#steps) return;
    for (let o = 0; o < counters.length; o++) counters[o]! *= this.#settings.decay ** (due - this.#steps);
    this.#steps = due;
  }

  #valueOf(object: number, d: number): number {
    return this.#counters[object]! * this.#cache.savedMs(object, d);
  }

  #weightOf(object: number): number {
    return this.#cache.countOf(object) * this.#cache.chunkWeight[object]!;
  }

  /** Lines 6-9: the requested object and the cheapest cached ones, until the whole object would fit. */
  #chooseCandidates(object: number): number[] {
    const cache = this.#cache;
    const whole = cache.kOf(object) * cache.chunkWeight[object]!;
    const candidates = [object];
    let room = cache.capacity - cache.used + this.#weightOf(object);
    const others = [...this.#cached].filter((other) => other !== object && cache.countOf(other) > 0);
    const densities = others.map((other) => this.#valueOf(other, cache.countOf(other)) / this.#weightOf(other));
    while (room < whole && candidates.length <= others.length) {
      const at = densities.indexOf(Math.min(...densities));
      densities[at] = Infinity;
      candidates.push(others[at]!);
      room += this.#weightOf(others[at]!);
    }
    return candidates;
  }

  /** Lines 10-13: gives the candidates their best share of the free room and of their own. */
  #divide(candidates: readonly number[]): void {
    const cache = this.#cache;
    const free = cache.capacity - cache.used;
    const room = candidates.reduce((sum, object) => sum + this.#weightOf(object), free);
    const { count } = configureSome(cache, this.#counters, candidates, room);
    for (const object of candidates) cache.keep(object, 0);
    for (const [i, object] of candidates.entries()) {
      cache.keep(object, count[i]!);
      if (count[i]! > 0) this.#cached.add(object);
      else this.#cached.delete(object);
    }
  }
}
