/**
 * The default policy, which needs no tuning. A filter over several horizons estimates popularity
 * (`popularity-filter.ts`). A requested object that is worth more than what it would replace takes its place at once.
 * From time to time the policy solves for the whole cache exactly. Every change must gain more than its cache write
 * costs.
 */
import { configureSome } from "../../policy/configure.ts";
import type { Policy, PolicyCache } from "../../policy/policy.ts";
import { packSnapshot, type SnapshotReader } from "../../policy/snapshot.ts";
import { Contents } from "./contents.ts";
import { PopularityFilter } from "./popularity-filter.ts";

/**
 * Where a write's price is unknown, it costs as much as this many milliseconds of one read. It must pay off before
 * popularity is likely to change.
 */
const WRITE_COST_MS = 200;
/** Requests between two solves of the whole cache: at least this many, and one per object considered. */
const SOLVE_EVERY = 64;
/** A solve omits objects worth less per unit of weight than this share of the cheapest cached chunk. */
const CANDIDATE_SHARE = 0.25;
/** A solve considers every object that saves anything while the cache is filled up to this share at most. */
const FULL_SHARE = 0.9;
/** Requests between two looks at single cached objects. */
const LOOK_EVERY = 2;

/** Creates the policy for `cache`, as new or from a snapshot. */
export function adaptive(cache: PolicyCache, state?: SnapshotReader): Policy {
  return new AdaptivePolicy(cache, state);
}

class AdaptivePolicy implements Policy {
  readonly #cache: PolicyCache;
  readonly #filter: PopularityFilter;
  readonly #contents: Contents;
  #sinceSolve: number;
  #untilSolve: number;
  /** Index of the kept object to look at next. */
  #turn: number;

  constructor(cache: PolicyCache, state?: SnapshotReader) {
    this.#cache = cache;
    // The order of reading is that of `snapshot`.
    const filter = new PopularityFilter(cache.objects, undefined, state);
    [this.#sinceSolve, this.#untilSolve, this.#turn] = (state?.float64(3) ?? [0, 0, 0]) as [number, number, number];
    const contents = new Contents(cache, filter.estimate, state?.objectList() ?? []);
    filter.onEstimate = (object) => contents.revalue(object);
    this.#filter = filter;
    this.#contents = contents;
  }

  onRequest(object: number): void {
    this.#filter.record(object);
    this.#review();
    if (++this.#sinceSolve >= this.#untilSolve) this.#solve();
    else if (this.#isUrgent(object)) this.#exchange(object);
  }

  onLatency(): void {
    this.#contents.measure();
    this.#solve();
    // The same number of chunks may now be other chunks.
    for (const object of this.#contents.objects) this.#cache.keep(object, this.#cache.countOf(object));
  }

  onChange(object: number): void {
    this.#contents.update(object);
  }

  forget(object: number): void {
    this.#filter.forget(object);
    this.#contents.update(object);
  }

  snapshot(): Uint8Array {
    return packSnapshot("adaptive", this.#cache.objects, [
      ...this.#filter.lists(),
      Float64Array.of(this.#sinceSolve, this.#untilSolve, this.#turn),
      this.#contents.objects,
    ]);
  }

  /** Brings one cached object's estimate up to date, because silence lowers its worth. */
  #review(): void {
    const { objects } = this.#contents;
    if (this.#sinceSolve % LOOK_EVERY !== 0 || objects.length === 0) return;
    this.#turn = (this.#turn + 1) % objects.length;
    this.#filter.touch(objects[this.#turn]!);
  }

  /** Whether more chunks of the object would be worth more than the cheapest ones in the cache and a write together. */
  #isUrgent(object: number): boolean {
    const cache = this.#cache;
    const has = cache.countOf(object);
    const saved = has === 0 ? 0 : cache.savedMs(object, has);
    const room = cache.capacity - cache.used;
    const writeCost = this.#writeCost(object);
    const estimate = this.#filter.estimate[object]!;
    for (let d = has + 1; d <= cache.kOf(object); d++) {
      const weight = (d - has) * cache.chunkWeight[object]!;
      const replaced = Math.max(0, weight - room);
      const least = replaced > 0 ? this.#contents.lowestPrice * replaced : 0;
      if (estimate * (cache.savedMs(object, d) - saved) > least + writeCost) return true;
    }
    return false;
  }

  /** A write's cost, spread over the requests that popularity lasts for. */
  #writeCost(object: number): number {
    return (this.#cache.writeMs?.(object) ?? WRITE_COST_MS) / this.#filter.lasting;
  }

  /** Solves for the object and for what it could replace: the kept objects of least worth. */
  #exchange(object: number): void {
    const cache = this.#cache;
    const contents = this.#contents;
    const own = contents.weightOf(object);
    const free = cache.capacity - cache.used;
    const others = contents.leastWorthwhile(object, cache.kOf(object) * cache.chunkWeight[object]! - own - free);
    for (const other of others) this.#filter.touch(other);
    this.#apply([object, ...others], free + own + others.reduce((sum, other) => sum + contents.weightOf(other), 0));
  }

  /** Solves exactly for everything that could belong into the cache. */
  #solve(): void {
    const cache = this.#cache;
    const filter = this.#filter;
    const contents = this.#contents;
    contents.dropLost();
    for (const object of contents.objects) filter.touch(object);
    const candidates = contents.objects.slice();
    const least = cache.used > FULL_SHARE * cache.capacity ? CANDIDATE_SHARE * contents.lowestPrice : 0;
    for (const object of filter.tracked) {
      if (cache.countOf(object) > 0 || contents.worthMost(object) <= least) continue;
      filter.touch(object);
      candidates.push(object);
    }
    this.#apply(candidates, cache.capacity);
    this.#sinceSolve = 0;
    this.#untilSolve = Math.max(SOLVE_EVERY, candidates.length);
  }

  /** Gives the candidates their best share of `capacity`, shrinking before growing. */
  #apply(candidates: readonly number[], capacity: number): void {
    const cache = this.#cache;
    const contents = this.#contents;
    const { count } = configureSome(cache, this.#filter.estimate, candidates, capacity, (object) =>
      this.#writeCost(object),
    );
    for (const isGrowing of [false, true]) {
      for (const [i, object] of candidates.entries()) {
        const has = cache.countOf(object);
        if (count[i] === has || count[i]! > has !== isGrowing) continue;
        cache.keep(object, count[i]!);
        contents.updateKept(object);
      }
    }
  }
}
