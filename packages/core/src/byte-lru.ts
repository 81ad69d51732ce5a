/** Values by name, at most so many bytes of them: those used longest ago go first. */
export class ByteLru<T extends { readonly bytes: number }> {
  readonly #bytesMax: number;
  /** Least recently used first. */
  readonly #entries = new Map<string, T>();
  #bytes = 0;

  /** @param bytesMax sum of the values' `bytes` that is kept; a value larger than this is not kept at all. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get(name: string): T | undefined {
    const entry = this.#entries.get(name);
    if (entry) {
      this.#entries.delete(name);
      this.#entries.set(name, entry);
    }
    return entry;
  }

  set(name: string, entry: T): void {
    this.delete(name);
    this.#entries.set(name, entry);
    this.#bytes += entry.bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#bytesMax) break;
      this.delete(oldest);
    }
  }

  names(): string[] {
    return [...this.#entries.keys()];
  }

  delete(name: string): void {
    const entry = this.#entries.get(name);
    if (!entry) return;
    this.#entries.delete(name);
    this.#bytes -= entry.bytes;
  }
}
