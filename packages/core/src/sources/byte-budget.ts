/**
 * A bound for answers that are collected in memory at one time. A store may send the largest answer there is to each of
 * many look-ups, and an isolate or a page that held all of them would end.
 */

/** Hands out bytes, and lets callers wait for those that others have. */
export class ByteBudget {
  readonly #waiting: { readonly bytes: number; readonly admit: () => void }[] = [];
  #free: number;

  /** @param bytesMax must be at least what one caller takes. */
  constructor(bytesMax: number) {
    this.#free = bytesMax;
  }

  /** Takes `bytes`, in the order of the calls, and resolves with what gives them back. Rejects when `signal` aborts. */
  async take(bytes: number, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const entry = { bytes, admit: resolve };
    const onAbort = (): void => {
      const at = this.#waiting.indexOf(entry);
      if (at >= 0) this.#waiting.splice(at, 1);
      this.#admit();
      reject(signal.reason as Error);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.push(entry);
    this.#admit();
    try {
      await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
    return () => {
      this.#free += bytes;
      this.#admit();
    };
  }

  #admit(): void {
    for (let first = this.#waiting[0]; first && first.bytes <= this.#free; first = this.#waiting[0]) {
      this.#waiting.shift();
      this.#free -= first.bytes;
      first.admit();
    }
  }
}
