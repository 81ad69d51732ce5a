/**
 * A value that one place decides and every isolate reads: one KV value with an epoch, kept in memory. KV may be late,
 * wrong or unavailable. A snapshot never returns to an older epoch, and no read waits for KV longer than 300 ms.
 */
import type { Clock } from "@agarose/core";
import { orUndefined } from "@agarose/core/async";

/** The part of a KV namespace that is read. */
interface Values {
  get(name: string): Promise<string | null>;
}

/** Which value, and how to read it. */
export interface KvSnapshotOptions<T> {
  readonly name: string;
  /** The value until the first one has arrived. */
  readonly empty: T;
  /** Returns the stored value, or undefined for a malformed one. */
  readonly parse: (text: string) => T | undefined;
}

/** From this age on, a read starts a load and still uses the old value. */
const FRESH_MS = 5_000;
/** From this age on, reads wait for a newer value, at most `DEADLINE_MS`. */
const USABLE_MS = 120_000;
const DEADLINE_MS = 300;
const LOAD_MS = 5_000;

/** The newest value of one KV name that this isolate knows. */
export class KvSnapshot<T extends { readonly epoch: number }> {
  readonly #clock: Clock;
  readonly #options: KvSnapshotOptions<T>;
  #current: T;
  #loadedMs = Number.NEGATIVE_INFINITY;
  #loading: Promise<void> | undefined;
  #loadingSinceMs = 0;

  constructor(clock: Clock, options: KvSnapshotOptions<T>) {
    this.#clock = clock;
    this.#options = options;
    this.#current = options.empty;
  }

  /** Returns the newest value that a read gets within `DEADLINE_MS`. Never rejects. */
  async get(kv: Values, waitUntil: (promise: Promise<unknown>) => void): Promise<T> {
    const age = this.#clock.now() - this.#loadedMs;
    if (age < FRESH_MS) return this.#current;
    const now = this.#clock.now();
    // A load dies with its invocation, so one that takes too long no longer counts.
    if (!this.#loading || now - this.#loadingSinceMs > 2 * LOAD_MS) {
      this.#loadingSinceMs = now;
      this.#loading = this.#load(kv);
      waitUntil(this.#loading);
    }
    if (age >= USABLE_MS) await orUndefined(this.#loading, DEADLINE_MS, this.#clock);
    return this.#current;
  }

  /** Takes the value that `load` returns if `epoch` is later than the one in memory. Rejects as `load` does. */
  async update(epoch: number, load: () => Promise<T>): Promise<void> {
    if (epoch > this.#current.epoch) this.set(await load());
  }

  /** Takes a value straight from where it was decided, unless it is of an older epoch. */
  set(value: T): void {
    if (value.epoch < this.#current.epoch) return;
    this.#current = value;
    this.#loadedMs = this.#clock.now();
  }

  async #load(kv: Values): Promise<void> {
    const { name, parse } = this.#options;
    const stored = await orUndefined(kv.get(name), LOAD_MS, this.#clock);
    this.#loading = undefined;
    // KV may show an older epoch for a minute, or nothing: the value in memory stays.
    this.#loadedMs = this.#clock.now();
    // The epoch comes first, so that megabytes that are known already need not be parsed.
    if (!stored || Number(/^\{"epoch":(\d+)/.exec(stored)?.[1]) <= this.#current.epoch) return;
    const parsed = parse(stored);
    if (parsed && parsed.epoch > this.#current.epoch) this.#current = parsed;
  }
}
