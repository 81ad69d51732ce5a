/** The places of a server that serves so many requests at once: first come, first served. */

/** All places of one server. */
export class Places {
  #taken = 0;
  readonly #waiting: (() => void)[] = [];

  /**
   * Resolves to the function that gives the place back, when fewer than `limit()` others have one; 0 is no limit.
   * Rejects with the signal's reason when that aborts first.
   */
  async enter(limit: () => number, signal: AbortSignal): Promise<() => void> {
    while (this.isFull(limit())) await this.#change(signal);
    this.#taken++;
    return () => {
      this.#taken--;
      this.look();
    };
  }

  /** Returns whether a request has to wait under this limit. */
  isFull(limit: number): boolean {
    return this.#taken >= (limit || Infinity);
  }

  /** Lets the requests that wait look again, the first one first: to be called after the limit has changed. */
  look(): void {
    for (const resume of this.#waiting.splice(0)) resume();
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(resume), 1);
        reject(signal.reason as Error);
      };
      const resume = (): void => {
        signal.removeEventListener("abort", stop);
        resolve();
      };
      signal.throwIfAborted();
      signal.addEventListener("abort", stop, { once: true });
      this.#waiting.push(resume);
    });
  }
}
