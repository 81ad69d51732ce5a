import type { Clock } from "@agarose/core";

/** Time that passes from event to event. All promises settle between two events. */
export class VirtualTime implements Clock {
  #nowMs = 0;
  #order = 0;
  readonly #events: { readonly atMs: number; readonly order: number; readonly run: () => void }[] = [];

  now(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): () => void {
    const event = { atMs: this.#nowMs + Math.max(0, ms), order: this.#order++, run };
    const at = this.#events.findLastIndex(({ atMs }) => atMs <= event.atMs);
    this.#events.splice(at + 1, 0, event);
    return () => {
      const index = this.#events.indexOf(event);
      if (index >= 0) this.#events.splice(index, 1);
    };
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /** Runs all events until `untilMs`. */
  async run(untilMs: number): Promise<void> {
    await settle();
    for (let event = this.#events.shift(); event && event.atMs <= untilMs; event = this.#events.shift()) {
      this.#nowMs = event.atMs;
      event.run();
      await settle();
    }
  }
}

/** Bodies of responses take more than one turn. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
}
