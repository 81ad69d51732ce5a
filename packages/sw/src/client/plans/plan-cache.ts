/**
 * The latest plans by key. With a known plan, a read asks the edge and the buckets at once.
 */
import { ByteLru, type Clock } from "@agarose/core";
import type { FullPlan } from "./bundle-request.ts";

/** How long a plan may be used after it arrived, in milliseconds. */
export const PLAN_TTL_MS = 60_000;
/** Characters of hashes over all plans: 4 MiB hold the plans of 8,000 objects of 4 MiB, or of 30 GB in large ones. */
export const PLAN_CACHE_CHARACTERS_MAX = 4 * 1024 * 1024;
/** What a plan takes beside its hashes. */
const PLAN_CHARACTERS = 1024;

interface Entry {
  readonly plan: FullPlan;
  readonly atMs: number;
  /** Characters of its hashes, a byte each, and what it takes beside them. */
  readonly bytes: number;
}

/** Evicts the least recently used plans first. */
export class PlanCache {
  readonly #clock: Clock;
  readonly #entries: ByteLru<Entry>;

  constructor(clock: Clock, charactersMax: number = PLAN_CACHE_CHARACTERS_MAX) {
    this.#clock = clock;
    this.#entries = new ByteLru(charactersMax);
  }

  /** The plan of `key` if it is younger than PLAN_TTL_MS. */
  get(key: string): FullPlan | undefined {
    const entry = this.#entries.get(key);
    return entry && this.#clock.now() - entry.atMs < PLAN_TTL_MS ? entry.plan : undefined;
  }

  /** The newest plan of `key`, however old it is: reads never go back behind its generation. */
  latest(key: string): FullPlan | undefined {
    return this.#entries.get(key)?.plan;
  }

  set(key: string, plan: FullPlan): void {
    const bytes = PLAN_CHARACTERS + plan.manifest.hashes.join("").length;
    this.#entries.set(key, { plan, atMs: this.#clock.now(), bytes });
  }

  /** Drops the plan of `key`. */
  delete(key: string): void {
    this.#entries.delete(key);
  }

  /** Drops the plans of all keys for which `isPurged`. */
  purge(isPurged: (key: string) => boolean): void {
    for (const key of this.#entries.names()) if (isPurged(key)) this.#entries.delete(key);
  }
}
