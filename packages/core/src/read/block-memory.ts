/**
 * Remembers the verified blocks of small reads, within a bound of bytes: the least recently used go first. Concurrent
 * reads of one block share one request.
 */
import { Flights, orUndefined } from "../async/coalesce.ts";
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
  readonly #flights: Flights<Uint8Array>;

  /** @param bytesMax the most bytes of blocks that are kept. */
  constructor(bytesMax: number, clock: Clock) {
    this.#kept = new ByteLru(bytesMax);
    this.#clock = clock;
    this.#flights = new Flights(clock, PATIENCE_MS);
  }

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
    const found = names.map((name) => this.#kept.get(name)?.block ?? this.#flights.get(name)?.work);
    if (!found.every((block) => block !== undefined)) return this.#lead(names, blockBytes, read);
    const blocks = await orUndefined(Promise.all(found), PATIENCE_MS, this.#clock, signal);
    signal.throwIfAborted();
    if (blocks) return concat(blocks);
    // The read that this one waited for failed, its consumer left, or it takes too long.
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
      this.#flights.lead(name, flight);
    }
    return whole;
  }
}
