/** Removes a writer's own claims once it has committed, those of many objects in one request to each region. */
import type { Clock } from "@agarose/core";
import type { Store } from "../buckets/store.ts";
import { askRegions, type Breaker } from "../regions/ask-regions.ts";
import { claimName } from "./names.ts";

interface Parts {
  readonly stores: readonly Store[];
  readonly clock: Clock;
  readonly breaker: Breaker;
}

const NAMES_MAX = 500;

/** Claims to generations that are committed, to be removed. What stays behind is left to the garbage collector. */
export class ClaimRemovals {
  readonly #context: Parts;
  readonly #namesMax: number;
  #names: string[] = [];

  /** Removes them `namesMax` at a time. */
  constructor(context: Parts, namesMax = NAMES_MAX) {
    this.#context = context;
    this.#namesMax = namesMax;
  }

  /** Removes the writer's claims to these generations of a key, sooner or later. Does not reject. */
  async add(key: string, generations: readonly number[]): Promise<void> {
    for (const generation of generations) this.#names.push(claimName(key, generation));
    if (this.#names.length >= this.#namesMax) await this.flush();
  }

  /** Removes what is left. Does not reject. */
  async flush(): Promise<void> {
    const names = this.#names;
    this.#names = [];
    if (names.length === 0) return;
    const { stores, clock, breaker } = this.#context;
    const remove = (store: Store, ended: AbortSignal): Promise<unknown> => store.remove(names, ended);
    const { signal } = new AbortController();
    await askRegions(stores, remove, { enough: Math.ceil(stores.length / 2) }, { clock, breaker, signal });
  }
}
