/**
 * Remembers the verified blocks of small reads, within a bound of bytes: the least recently used go first. Concurrent
 * reads of one block share one request.
 */
import { ByteLru } from "../byte-lru.ts";
import { concat } from "../format/hash-tree.ts";
import type { Clock } from "../ports.ts";

interface Kept {
  readonly bytes: number;
  readonly block: Uint8Array;
}

/** A read that others wait for may die with its runtime. After this long, they read for themselves. */
const PATIENCE_MS = 10_000;

/** The blocks that one client, or one isolate, has read lately. */
export class BlockMemory {
  readonly #kept: ByteLru<Kept>;
  readonly #clock: Clock;
  readonly #flights = new Map<string, Promise<Uint8Array>>();

  /** @param bytesMax the most bytes of blocks that are kept. */
  constructor(bytesMax: number, clock: Clock) {
    this.#kept = new ByteLru(bytesMax);
    this.#clock = clock;
  }

  /** Whether all of `names` are kept. */
  holds(names: readonly string[]): boolean {
    return names.every((name) => this.#kept.get(name));
  }

  /**
   * Resolves to the blocks `names`, one after the other, in an array of the caller's own. Calls `read` for all of them
   * if one is neither kept nor under way.
   *
   * @param blockBytes length of each block; the last one may be shorter.
   */
  async read(
    names: readonly string[],
    blockBytes: number,
    read: () => Promise<Uint8Array>,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    const found = names.map((name) => this.#kept.get(name)?.block ?? this.#flights.get(name));
    if (!found.every((block) => block !== undefined)) return this.#lead(names, blockBytes, read);
    const blocks = await this.#follow(Promise.all(found), signal);
    signal.throwIfAborted();
    if (blocks) return concat(blocks);
    // The read that this one waited for failed, or its consumer left.
    return this.#lead(names, blockBytes, read);
  }

  async #lead(names: readonly string[], blockBytes: number, read: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const whole = read();
    for (const [i, name] of names.entries()) {
      const flight = whole.then((bytes) => {
        const block = bytes.slice(i * blockBytes, (i + 1) * blockBytes);
        this.#kept.set(name, { bytes: block.length, block });
        return block;
      });
      this.#flights.set(name, flight);
      const end = (): void => {
        if (this.#flights.get(name) === flight) this.#flights.delete(name);
      };
      flight.then(end, end);
    }
    return whole;
  }

  /** Undefined when the leader fails, takes too long, or `signal` aborts. */
  #follow(blocks: Promise<Uint8Array[]>, signal: AbortSignal): Promise<Uint8Array[] | undefined> {
    return new Promise((resolve) => {
      const leave = (): void => resolve(undefined);
      const cancel = this.#clock.after(PATIENCE_MS, leave);
      signal.addEventListener("abort", leave, { once: true });
      blocks.then(resolve, leave).finally(() => {
        cancel();
        signal.removeEventListener("abort", leave);
      });
    });
  }
}
