/**
 * A process of the simulation. Whatever comes to it, an answer or a timer, comes through `deliver`. So it can be killed
 * or suspended at every await of its code.
 */
import type { Clock } from "@agarose/core";
import type { EventLoop } from "./event-loop.ts";
import { noise } from "./noise.ts";

/** The faults of a process. */
export interface Fate {
  /** Killed instead of this delivery, counted from 0. */
  readonly killedAt?: number;
  /** Suspended at this delivery, for so long. */
  readonly suspended?: { readonly at: number; readonly ms: number };
  /** How wrong its wall clock is. */
  readonly skewMs?: number;
}

/** Midnight of some day. Every wall clock that is right starts here. */
export const EPOCH_MS = Date.UTC(2026, 0, 1);

export class Process {
  readonly id: number;
  readonly name: string;
  /** How many answers and timers it has received. */
  deliveries = 0;
  isDead = false;
  /** Whether it was suspended at some time. */
  hasSlept = false;
  /** Never aborts, because an end in the simulation is a kill. */
  readonly signal = new AbortController().signal;
  readonly #loop: EventLoop;
  readonly #seed: number;
  readonly #fate: Fate;
  readonly #onFate: (what: string) => void;
  #resumesAtMs = 0;
  #drawn = 0;
  #requests = 0;
  #lies = 0;

  constructor(
    id: number,
    name: string,
    loop: EventLoop,
    seed: number,
    fate: Fate = {},
    onFate: (what: string) => void = () => {},
  ) {
    this.id = id;
    this.name = name;
    this.#loop = loop;
    this.#seed = seed;
    this.#fate = fate;
    this.#onFate = onFate;
  }

  readonly clock: Clock = {
    now: () => this.#loop.nowMs,
    after: (ms, callback) => {
      let isCancelled = false;
      const cancel = this.#loop.after(ms, () => this.deliver(() => isCancelled || callback()));
      return () => {
        isCancelled = true;
        cancel();
      };
    },
  };

  /** The time of day, as this process believes. */
  readonly nowMs = (): number => EPOCH_MS + this.#loop.nowMs + (this.#fate.skewMs ?? 0);

  readonly random = (): number => noise(this.#seed, this.id, 1, this.#drawn++);

  /** 32 hex digits that no other process has. */
  readonly newUpload = (): string => {
    const digits = Array.from({ length: 4 }, () => Math.floor(this.random() * 2 ** 32).toString(16));
    return digits.map((part) => part.padStart(8, "0")).join("");
  };

  /** Counts the requests of this process. */
  nextRequest(): number {
    return this.#requests++;
  }

  /** Counts the answers of a hostile region to this process. */
  nextLie(): number {
    return this.#lies++;
  }

  /** Passes an event to the process, later if it is suspended, never if it is dead. */
  deliver(callback: () => unknown): void {
    if (this.isDead) return;
    if (this.#loop.nowMs < this.#resumesAtMs) {
      this.#loop.after(this.#resumesAtMs - this.#loop.nowMs, () => this.deliver(callback));
      return;
    }
    const { killedAt, suspended } = this.#fate;
    const delivery = this.deliveries++;
    if (delivery === killedAt) {
      this.isDead = true;
      this.#onFate("killed");
      return;
    }
    if (delivery === suspended?.at) {
      this.hasSlept = true;
      this.#resumesAtMs = this.#loop.nowMs + suspended.ms;
      this.#onFate(`suspended for ${suspended.ms} ms`);
      this.deliver(callback);
      return;
    }
    callback();
  }
}
