/**
 * C2P (ICDCN 2015) for one of several cooperating caches: a read brings in what neither this cache nor a peer holds.
 * The object of which all caches together hold the least gives way (Algorithms 1 and 2, `cooperation/replacement.ts`).
 *
 * Departures: an object leaves a cache with all its chunks there. Of the peers' reads only their number counts, not
 * their time, because PoPs state it once a period.
 */
import { decayedHits } from "../../cooperation/hit-decay.ts";
import { chooseVictim, type ReplacementCandidate } from "../../cooperation/replacement.ts";
import { keptObjects, type Policy, type PolicyCache } from "../../policy/policy.ts";
import { packSnapshot, type SnapshotReader } from "../../policy/snapshot.ts";

interface C2pSettings {
  /** Reads closer than this are ordered by time, others by hits; the paper does not print Algorithm 1's threshold. */
  readonly affinitySeconds: number;
}

interface Kept {
  readonly hits: number;
  readonly readMs: number;
}

/** Creates the policy for `cache`, as new or from a snapshot. */
export function c2p(cache: PolicyCache, { affinitySeconds }: C2pSettings, state?: SnapshotReader): Policy {
  return new C2pPolicy(cache, affinitySeconds * 1000, state);
}

class C2pPolicy implements Policy {
  readonly ownReadsOnly = true;
  readonly #cache: PolicyCache;
  readonly #affinityMs: number;
  /** Least recently read first. */
  readonly #kept = new Map<number, Kept>();

  constructor(cache: PolicyCache, affinityMs: number, state?: SnapshotReader) {
    this.#cache = cache;
    this.#affinityMs = affinityMs;
    // The order of reading is that of `snapshot`.
    const known = state?.objectList() ?? [];
    const hits = state?.float64(known.length) ?? [];
    const readMs = state?.float64(known.length) ?? [];
    const unknown = keptObjects(cache).filter((object) => !known.includes(object));
    for (const object of unknown) this.#kept.set(object, { hits: 0, readMs: 0 });
    for (const [i, object] of known.entries()) this.#kept.set(object, { hits: hits[i]!, readMs: readMs[i]! });
  }

  onRequest(object: number, seconds: number): void {
    const nowMs = seconds * 1000;
    const known = this.#kept.get(object);
    if (known) {
      this.#kept.delete(object);
      this.#kept.set(object, { hits: decayedHits(known.hits, known.readMs, nowMs) + 1, readMs: nowMs });
    }
    const missing = this.#cache.kOf(object) - this.#cache.countOf(object) - this.#elsewhere(object);
    if (missing > 0) this.#admit(object, missing, nowMs);
  }

  forget(object: number): void {
    this.#kept.delete(object);
  }

  snapshot(): Uint8Array {
    const kept = [...this.#kept.values()];
    return packSnapshot("c2p", this.#cache.objects, [
      [...this.#kept.keys()],
      Float64Array.from(kept, ({ hits }) => hits),
      Float64Array.from(kept, ({ readMs }) => readMs),
    ]);
  }

  /** Chunks that peers hold and this cache does not. */
  #elsewhere(object: number): number {
    return this.#cache.peers?.chunksBeside(object) ?? 0;
  }

  #admit(object: number, missing: number, nowMs: number): void {
    const cache = this.#cache;
    const weight = cache.chunkWeight[object]!;
    const has = cache.countOf(object);
    const more = Math.min(missing, Math.floor(cache.capacity / weight) - has);
    while (cache.used + more * weight > cache.capacity) {
      const victim = chooseVictim(this.#candidates(object, nowMs), this.#affinityMs);
      if (!victim) break;
      cache.keep(victim.object, 0);
      this.#kept.delete(victim.object);
    }
    if (more <= 0 || cache.used + more * weight > cache.capacity) return;
    cache.keep(object, has + more);
    if (!this.#kept.has(object)) this.#kept.set(object, { hits: 1, readMs: nowMs });
  }

  *#candidates(except: number, nowMs: number): Iterable<ReplacementCandidate & { readonly object: number }> {
    const cache = this.#cache;
    for (const [object, { hits, readMs }] of this.#kept) {
      const own = cache.countOf(object);
      if (object === except || own === 0) continue;
      const oic = Math.min(1, (own + this.#elsewhere(object)) / cache.kOf(object));
      yield { object, oic, hits: decayedHits(hits, readMs, nowMs) + (cache.peers?.hits(object) ?? 0), readMs };
    }
  }
}
