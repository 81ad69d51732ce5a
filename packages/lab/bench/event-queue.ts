/** Events by time: a binary heap. */
export class EventQueue {
  readonly #heap: { readonly ms: number; readonly run: () => void }[] = [];

  /** Adds an event. */
  at(ms: number, run: () => void): void {
    const heap = this.#heap;
    let i = heap.push({ ms, run }) - 1;
    for (let up = (i - 1) >> 1; i > 0 && heap[up]!.ms > ms; i = up, up = (i - 1) >> 1) this.#swap(i, up);
  }

  /** Runs all events in order, and those that they add. */
  run(): void {
    for (let next = this.#take(); next; next = this.#take()) next.run();
  }

  #take(): { readonly run: () => void } | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (!first || first === last) return first;
    heap[0] = last!;
    for (let i = 0; ;) {
      let least = i;
      for (const child of [2 * i + 1, 2 * i + 2]) {
        if (child < heap.length && heap[child]!.ms < heap[least]!.ms) least = child;
      }
      if (least === i) return first;
      this.#swap(i, least);
      i = least;
    }
  }

  #swap(a: number, b: number): void {
    [this.#heap[a], this.#heap[b]] = [this.#heap[b]!, this.#heap[a]!];
  }
}
