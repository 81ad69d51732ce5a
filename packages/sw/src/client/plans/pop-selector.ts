/** Orders the PoPs by distance: probes measure the round trip to each. */
import type { Clock, FetchPort } from "@agarose/core";
import { orUndefined } from "@agarose/core/async";
import { UNWANTED } from "@agarose/core/sources";
import type { Endpoint } from "../../common/config.ts";
import { popId, type LatencyTracker } from "../latency-tracker.ts";

/** A read probes again when the last probe is this old. */
export const PROBE_EVERY_MS = 30_000;
/** When the first probe is this old. A first probe beside a page that loads may choose the wrong PoP by chance. */
export const PROBE_AGAIN_MS = 2_000;
const PROBE_TIMEOUT_MS = 3_000;
/** Sorts a PoP that never answered a probe behind those that did. */
const TRIP_MS_UNKNOWN = 10_000;
/** Another PoP becomes the nearest when its round trip is below this share of the current one's. */
const CLEARLY_NEARER = 0.8;
/** How much longer a round trip may be than by the probe before. */
const GROWTH_MAX = 1.2;

/** Dependencies of a `PopSelector`. */
export interface PopSelectorOptions {
  /** In order of preference until they are measured. */
  readonly pops: readonly Endpoint[];
  readonly clock: Clock;
  readonly fetch: FetchPort;
  readonly latencies: LatencyTracker;
}

/** Knows which PoP is nearest. */
export class PopSelector {
  readonly #options: PopSelectorOptions;
  /** Round trips of the latest probe. The time to a plan would also count what the PoP fetches for it. */
  readonly #tripMs = new Map<string, number>();
  #nearest: Endpoint | undefined;
  /** Until then, only a client that has moved probes. */
  #nextMs = 0;

  constructor(options: PopSelectorOptions) {
    this.#options = options;
  }

  /**
   * The PoPs, nearest first; those that failed lately come last. The nearest PoP by the last probe stays first until
   * another is clearly nearer: knowing its cache is worth more than a millisecond.
   */
  byDistance(): readonly Endpoint[] {
    const { latencies } = this.#options;
    const isAvoided = ({ name }: Endpoint): number => Number(latencies.isAvoided(popId(name)));
    const distanceMs = (pop: Endpoint): number =>
      (this.#tripMs.get(pop.name) ?? TRIP_MS_UNKNOWN) * (pop === this.#nearest ? CLEARLY_NEARER : 1);
    return this.#options.pops.toSorted((a, b) => isAvoided(a) - isAvoided(b) || distanceMs(a) - distanceMs(b));
  }

  /**
   * Measures the round trip to every PoP, after the first probes at most once in `PROBE_EVERY_MS`. With `moved`, it
   * measures now and forgets every latency that was measured at the client's old place.
   */
  async probe(moved?: boolean): Promise<void> {
    const { clock, latencies, pops } = this.#options;
    if (pops.length < 2 || (!moved && clock.now() < this.#nextMs)) return;
    if (moved) {
      latencies.clear();
      this.#tripMs.clear();
    }
    this.#nextMs = clock.now() + (this.#nextMs && !moved ? PROBE_EVERY_MS : PROBE_AGAIN_MS);
    await Promise.all(pops.map((pop) => this.#probe(pop)));
    // Not before all have answered: the first one to answer need not be the nearest.
    this.#nearest = this.byDistance()[0];
  }

  async #probe({ name, url }: Endpoint): Promise<void> {
    const { clock, fetch, latencies } = this.#options;
    const abort = new AbortController();
    const trip = async (): Promise<number> => {
      const startMs = clock.now();
      const { status, body } = await fetch(`${url}/healthz`, { signal: abort.signal });
      await body?.cancel();
      if (status !== 200) throw status;
      return clock.now() - startMs;
    };
    const shortest = async (): Promise<number> => {
      // The first trip opens the connection, so it is not part of a read's time.
      await trip();
      // The shortest of three: other work delays some. A long read delays all, of the PoP that serves it.
      return Math.min(
        GROWTH_MAX * (this.#tripMs.get(name) ?? TRIP_MS_UNKNOWN),
        await trip(),
        await trip(),
        await trip(),
      );
    };
    const tripMs = await orUndefined(shortest(), PROBE_TIMEOUT_MS, clock);
    if (tripMs === undefined) {
      abort.abort(UNWANTED);
      return latencies.failed(popId(name));
    }
    this.#tripMs.set(name, tripMs);
    latencies.forget(popId(name));
    latencies.seed(popId(name), { meanMs: tripMs, sdMs: tripMs / 4 });
  }
}
