/** A cache that is bounded by bytes and evicts the least recently used value first. */

/** Values by name. The sum of their `bytes` never exceeds a maximum: the least recently used values go first. */
export class ByteLru<T extends { readonly bytes: number }> {
  readonly #bytesMax: number;
  /** In order of use, the least recent first. */
  readonly #entries = new Map<string, T>();
  #bytes = 0;

  /** @param bytesMax the largest sum of `bytes`; a single larger value is not kept. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The value of `name`, which becomes the most recently used one; undefined when it is not here. */
  get(name: string): T | undefined {
    const entry = this.#entries.get(name);
    if (entry) {
      this.#entries.delete(name);
      this.#entries.set(name, entry);
    }
    return entry;
  }

  /** Puts `entry` in place of what `name` had, and evicts as many others as that takes. */
  set(name: string, entry: T): void {
    this.delete(name);
    if (entry.bytes > this.#bytesMax) return;
    this.#entries.set(name, entry);
    this.#bytes += entry.bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#bytesMax) break;
      this.delete(oldest);
    }
  }

  /** All names, the least recently used first. */
  names(): string[] {
    return [...this.#entries.keys()];
  }

  delete(name: string): void {
    this.#bytes -= this.#entries.get(name)?.bytes ?? 0;
    this.#entries.delete(name);
  }
}
