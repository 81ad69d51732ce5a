/**
 * What all reads of one isolate may hold at once. A Worker has 128 MB, however many clients read however large objects, and
 * an isolate beyond that ends with all its reads; so a read takes its share, and one that finds no room waits or does without.
 */
import { AgaroseError, type Clock } from "@agarose/core";

/**
 * Of 128 MB: the rest is for code, the chunk cache's memory, the codec's, and garbage that is not collected yet. Sixteen stripes of
 * 4 MiB, with the padding of their shards.
 */
export const READ_BYTES_MAX = 65 * 1024 * 1024;
/** As long as one stripe may take: a late first byte is better than an error, up to here. */
const WAIT_MS = 30_000;
const LOOK_MS = 25;
/** Reads of one object at one time hold mostly the same stripes (`StripeCoalescing`): all but the first count for so much. */
const SAME_OBJECT = 0.25;

/** The part of one read. */
export interface MemoryLease {
  /** How many units it may hold now: at least one. Changes as other reads come and go. */
  units(): number;
  release(): void;
}

export class MemoryBudget {
  readonly #clock: Clock;
  readonly #bytesMax: number;
  /** One unit of every read. */
  #bytes = 0;
  #reads = 0;
  readonly #readsOf = new Map<string, number>();

  constructor(clock: Clock, bytesMax = READ_BYTES_MAX) {
    this.#clock = clock;
    this.#bytesMax = bytesMax;
  }

  /** Reads that have a share. */
  get reads(): number {
    return this.#reads;
  }

  /** A share of units of `bytes` each, or undefined while there is room for none. A lone read always gets one. */
  tryAcquire(version: string, bytes: number): MemoryLease | undefined {
    const others = this.#readsOf.get(version) ?? 0;
    const counted = others > 0 ? SAME_OBJECT * bytes : bytes;
    if (this.#reads > 0 && this.#bytes + counted > this.#bytesMax) return undefined;
    this.#reads++;
    this.#bytes += counted;
    this.#readsOf.set(version, others + 1);
    let released = false;
    return {
      units: () => Math.max(1, Math.floor(this.#bytesMax / this.#bytes)),
      release: () => {
        if (released) return;
        released = true;
        this.#reads--;
        this.#bytes -= counted;
        const left = this.#readsOf.get(version)! - 1;
        if (left > 0) this.#readsOf.set(version, left);
        else this.#readsOf.delete(version);
      },
    };
  }

  /** The same, once there is room. Rejects with BUSY after a while, or with the signal's reason. */
  async acquire(version: string, bytes: number, signal: AbortSignal): Promise<MemoryLease> {
    const startMs = this.#clock.now();
    for (;;) {
      signal.throwIfAborted();
      const share = this.tryAcquire(version, bytes);
      if (share) return share;
      if (this.#clock.now() - startMs >= WAIT_MS) {
        throw new AgaroseError(
          "BUSY",
          `${this.#reads} reads hold the ${this.#bytesMax} bytes that this PoP has for reads: ask again, or another PoP`,
          { reads: this.#reads, bytesMax: this.#bytesMax },
        );
      }
      // By looking, not by being told: a promise of one invocation must not be settled by another.
      await new Promise<void>((resolve) => this.#clock.after(LOOK_MS, resolve));
    }
  }
}
