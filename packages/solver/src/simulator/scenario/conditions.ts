/** The state of the regions at a moment, slow or down, by the scenario's events. */
import type { EventSpec } from "./scenario.ts";

/** Moves through the events of a scenario. */
export class Conditions {
  version = 0;
  /** Per region: factor on its latency. */
  readonly factor: Float64Array;
  /** Per region: 1 while it is down. */
  readonly down: Uint8Array;
  readonly #events: readonly EventSpec[];
  readonly #regions: readonly string[];
  /** Moments in seconds at which an event begins or ends, ascending. */
  readonly #changes: readonly number[];
  #next = 0;

  constructor(events: readonly EventSpec[], regions: readonly string[]) {
    this.#events = events;
    this.#regions = regions;
    this.factor = new Float64Array(regions.length).fill(1);
    this.down = new Uint8Array(regions.length);
    const moments = events.flatMap((event) => [event.atSeconds, event.atSeconds + event.forSeconds]);
    this.#changes = [...new Set(moments)].toSorted((a, b) => a - b);
  }

  /** Moves on to `seconds` (never back); returns whether anything changed. */
  advance(seconds: number): boolean {
    const before = this.#next;
    while (this.#next < this.#changes.length && this.#changes[this.#next]! <= seconds) this.#next++;
    if (this.#next === before) return false;
    this.version++;
    for (const [r, region] of this.#regions.entries()) {
      const active = this.#events.filter(
        (event) =>
          event.region === region && event.atSeconds <= seconds && seconds < event.atSeconds + event.forSeconds,
      );
      this.factor[r] = active.reduce((factor, event) => factor * event.latencyFactor, 1);
      this.down[r] = active.some((event) => event.down) ? 1 : 0;
    }
    return true;
  }
}
