/**
 * A limit on the requests of one isolate that wait for one region, so that a slow bucket does not collect ever more of
 * them. A request that must wait is late for its reader, which asks another region instead.
 *
 * Invocations cannot wake each other (workerd allows no I/O across requests), so a waiting request polls, and places
 * come in no order. A place whose invocation died becomes free after 30 s.
 */
import type { Clock } from "@agarose/core";
import { sleep } from "../runtime/async.ts";

const LOOK_AGAIN_MS = 10;
const PLACE_MS_MAX = 30_000;

/** The places of all regions. */
export class RegionLimits {
  readonly #clock: Clock;
  readonly #max: number;
  /** By region: when each request in flight began. */
  readonly #inFlight = new Map<string, Set<{ readonly sinceMs: number }>>();
  #waited = 0;

  /** @param max 0 sets no limit. */
  constructor(clock: Clock, max: number) {
    this.#clock = clock;
    this.#max = max;
  }

  /** How many requests had to wait. */
  get waited(): number {
    return this.#waited;
  }

  /** Runs `task` as one of `region`'s requests. Rejects with the signal's reason if that aborts while it waits. */
  async run<T>(region: string, task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#max === 0) return task();
    if (!this.#hasRoom(region)) this.#waited++;
    while (!this.#hasRoom(region)) {
      await sleep(LOOK_AGAIN_MS, this.#clock);
      signal?.throwIfAborted();
    }
    const place = { sinceMs: this.#clock.now() };
    const places = this.#inFlight.get(region)!;
    places.add(place);
    try {
      return await task();
    } finally {
      places.delete(place);
    }
  }

  #hasRoom(region: string): boolean {
    const places = this.#inFlight.get(region) ?? new Set();
    this.#inFlight.set(region, places);
    for (const place of places) {
      if (this.#clock.now() - place.sinceMs > PLACE_MS_MAX) places.delete(place);
    }
    return places.size < this.#max;
  }
}
