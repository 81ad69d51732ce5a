/**
 * What is decided in one place and read in all isolates: one KV value with an epoch, kept in memory. KV may be late, wrong or
 * gone: nothing goes back to an older epoch, and no read waits for it longer than a moment.
 */
import type { Clock } from "@agarose/core";
import { orUndefined } from "./async.ts";

/** The part of a KV namespace that is read. */
interface Values {
  get(name: string): Promise<string | null>;
}

export interface BroadcastOptions<T> {
  /** Of the KV value. */
  readonly name: string;
  /** What holds until the first value is there. */
  readonly empty: T;
  /** A stored value, or undefined when it is malformed. */
  readonly parse: (text: string) => T | undefined;
}

/** From this age on a newer one is looked for, beside the reads that still use the old one. */
const FRESH_MS = 5_000;
/** From this age on reads wait for a newer one, at most `DEADLINE_MS`. */
const USABLE_MS = 120_000;
const DEADLINE_MS = 300;
const LOAD_MS = 5_000;

export class Broadcast<T extends { readonly epoch: number }> {
  readonly #clock: Clock;
  readonly #options: BroadcastOptions<T>;
  #current: T;
  #loadedMs = Number.NEGATIVE_INFINITY;
  #loading: Promise<void> | undefined;
  #loadingSinceMs = 0;

  constructor(clock: Clock, options: BroadcastOptions<T>) {
    this.#clock = clock;
    this.#options = options;
    this.#current = options.empty;
  }

  /** The newest value that can be had without making a read wait for KV longer than a moment. */
  async get(kv: Values, waitUntil: (promise: Promise<unknown>) => void): Promise<T> {
    const age = this.#clock.now() - this.#loadedMs;
    if (age < FRESH_MS) return this.#current;
    const now = this.#clock.now();
    // A load dies with the invocation that began it, so one that takes too long no longer counts.
    if (!this.#loading || now - this.#loadingSinceMs > 2 * LOAD_MS) {
      this.#loadingSinceMs = now;
      this.#loading = this.#load(kv);
      waitUntil(this.#loading);
    }
    if (age >= USABLE_MS) await orUndefined(this.#loading, DEADLINE_MS, this.#clock);
    return this.#current;
  }

  /** Takes over what `load` brings where that is of a later epoch, as somebody says who knows. */
  async hear(epoch: number, load: () => Promise<T>): Promise<void> {
    if (epoch > this.#current.epoch) this.set(await load());
  }

  /** What is known to hold now, from where it is decided: this isolate need not wait for KV to show it. */
  set(value: T): void {
    if (value.epoch < this.#current.epoch) return;
    this.#current = value;
    this.#loadedMs = this.#clock.now();
  }

  async #load(kv: Values): Promise<void> {
    const { name, parse } = this.#options;
    const stored = await orUndefined(kv.get(name), LOAD_MS, this.#clock);
    this.#loading = undefined;
    // KV may show an older epoch for a minute, or nothing: what we have stays, and is tried again after a while.
    this.#loadedMs = this.#clock.now();
    const parsed = stored ? parse(stored) : undefined;
    if (parsed && parsed.epoch > this.#current.epoch) this.#current = parsed;
  }
}
