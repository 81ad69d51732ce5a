/**
 * Plans as last heard, by key: what lets a repeated read ask the edge and the buckets in the same moment.
 */
import type { Clock } from "@agarose/core";
import type { FullPlan } from "./sources/bundle-request.ts";

export const PLAN_TTL_MS = 60_000;
/** Characters of hashes over all plans: 4 MiB hold the plans of 8,000 objects of 4 MiB, or of 30 GB in large ones. */
export const PLAN_CACHE_CHARACTERS_MAX = 4 * 1024 * 1024;
/** What a plan takes beside its hashes. */
const PLAN_CHARACTERS = 1024;

interface Entry {
  readonly plan: FullPlan;
  readonly atMs: number;
  readonly characters: number;
}

/** Least recently used plans go first. */
export class PlanCache {
  readonly #clock: Clock;
  readonly #charactersMax: number;
  readonly #entries = new Map<string, Entry>();
  #characters = 0;

  constructor(clock: Clock, charactersMax: number = PLAN_CACHE_CHARACTERS_MAX) {
    this.#clock = clock;
    this.#charactersMax = charactersMax;
  }

  /** The plan of `key` when it was heard less than PLAN_TTL_MS ago. */
  get(key: string): FullPlan | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    this.delete(key);
    if (this.#clock.now() - entry.atMs >= PLAN_TTL_MS) return undefined;
    this.#insert(key, entry);
    return entry.plan;
  }

  set(key: string, plan: FullPlan): void {
    this.delete(key);
    const characters = PLAN_CHARACTERS + plan.manifest.hashes.join("").length;
    if (characters > this.#charactersMax) return;
    this.#insert(key, { plan, atMs: this.#clock.now(), characters });
    for (const oldest of this.#entries.keys()) {
      if (this.#characters <= this.#charactersMax) break;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    this.#characters -= this.#entries.get(key)?.characters ?? 0;
    this.#entries.delete(key);
  }

  purge(isPurged: (key: string) => boolean): void {
    for (const key of this.#entries.keys()) if (isPurged(key)) this.delete(key);
  }

  #insert(key: string, entry: Entry): void {
    this.#entries.set(key, entry);
    this.#characters += entry.characters;
  }
}
