/**
 * How many requests of one isolate may wait for one region at a time, so that a slow bucket is not buried by those who
 * wait for it. A request that must wait is late for its reader, which asks another region instead.
 *
 * Invocations may not wake each other (workerd allows no I/O across requests), so who waits looks again now and then, and
 * turns come in no order. A place whose invocation died is free again after a while.
 */
import type { Clock } from "@agarose/core";

const LOOK_AGAIN_MS = 10;
const PLACE_MS_MAX = 30_000;

export class RegionLimits {
  readonly #clock: Clock;
  readonly #max: number;
  /** By region: when each of the requests under way began. */
  readonly #underWay = new Map<string, Set<{ readonly sinceMs: number }>>();
  #waited = 0;

  /** @param max 0 sets no limit. */
  constructor(clock: Clock, max: number) {
    this.#clock = clock;
    this.#max = max;
  }

  /** Requests that had to wait. */
  get waited(): number {
    return this.#waited;
  }

  /** Runs `task` as one of `region`'s requests. Rejects with the signal's reason if that aborts while it waits. */
  async run<T>(region: string, task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#max === 0) return task();
    if (!this.#hasRoom(region)) this.#waited++;
    while (!this.#hasRoom(region)) {
      await new Promise<void>((resolve) => void this.#clock.after(LOOK_AGAIN_MS, resolve));
      signal?.throwIfAborted();
    }
    const place = { sinceMs: this.#clock.now() };
    const places = this.#underWay.get(region)!;
    places.add(place);
    try {
      return await task();
    } finally {
      places.delete(place);
    }
  }

  #hasRoom(region: string): boolean {
    const places = this.#underWay.get(region) ?? new Set();
    this.#underWay.set(region, places);
    for (const place of places) {
      if (this.#clock.now() - place.sinceMs > PLACE_MS_MAX) places.delete(place);
    }
    return places.size < this.#max;
  }
}
