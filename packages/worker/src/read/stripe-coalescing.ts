/**
 * Request coalescing: concurrent reads of one stripe of one version make one set of requests. Reads share data only.
 * Requests, timers and signals stay with the invocation that began (the leader). The leader continues for its followers
 * even when its own client leaves.
 */
import { toAgaroseError, type AgaroseError, type Clock } from "@agarose/core";
import { Flights, orUndefined, type Flight } from "@agarose/core/async";
import type { StripeData } from "@agarose/core/read";

interface FlightOptions {
  readonly version: string;
  readonly stripe: number;
  readonly read: (signal: AbortSignal) => Promise<StripeData>;
  /** The signal of the read that wants the stripe. */
  readonly signal: AbortSignal;
  readonly waitUntil: (promise: Promise<unknown>) => void;
}

type Outcome = { readonly data: StripeData } | { readonly error: AgaroseError };

/** A flight may die with its leader. After this long, a follower starts another one. */
const PATIENCE_MS = 10_000;

/** The reads in flight of one isolate. */
export class StripeCoalescing {
  readonly #clock: Clock;
  readonly #flights: Flights<Outcome>;
  /** Further reads that wait for the leader of a flight. */
  readonly #followers = new WeakMap<Flight<Outcome>, number>();
  readonly #counters = { led: 0, followed: 0 };

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#flights = new Flights(clock, PATIENCE_MS);
  }

  /** How many stripes reads have led and followed. */
  get counters(): { readonly led: number; readonly followed: number } {
    return this.#counters;
  }

  get inFlight(): number {
    return this.#flights.size;
  }

  /** Resolves to the stripe. Rejects as `read` does, or with ABORTED when `signal` aborts. */
  async read(options: FlightOptions): Promise<StripeData> {
    const name = `${options.version}:${options.stripe}`;
    const flight = this.#flights.get(name);
    const outcome = flight ? await this.#follow(name, flight, options.signal) : await this.#lead(name, options);
    if (!outcome) return this.read(options);
    if ("error" in outcome) throw outcome.error;
    return outcome.data;
  }

  async #lead(name: string, { read, signal, waitUntil }: FlightOptions): Promise<Outcome> {
    this.#counters.led++;
    const abort = new AbortController();
    const flight = this.#flights.lead(name, settled(read(abort.signal)));
    waitUntil(flight.work);
    const leave = (): void => {
      if (this.#followers.get(flight)) return;
      this.#flights.end(name, flight);
      abort.abort(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await unlessAborted(flight.work, signal);
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  /** Resolves to the outcome of another read's flight, or to undefined when that takes too long and may have died. */
  async #follow(name: string, flight: Flight<Outcome>, signal: AbortSignal): Promise<Outcome | undefined> {
    const count = (further: number): unknown =>
      this.#followers.set(flight, (this.#followers.get(flight) ?? 0) + further);
    this.#counters.followed++;
    count(1);
    try {
      const leftMs = flight.untilMs - this.#clock.now();
      const outcome = await orUndefined(unlessAborted(flight.work, signal), leftMs, this.#clock);
      if (!outcome) this.#flights.end(name, flight);
      return outcome;
    } finally {
      count(-1);
    }
  }
}

function settled(reading: Promise<StripeData>): Promise<Outcome> {
  return reading.then(
    (data) => ({ data }),
    (error: unknown) => ({ error: toAgaroseError(error) }),
  );
}

/** Resolves to `outcome`, or to ABORTED as soon as `signal` aborts. */
function unlessAborted(outcome: Promise<Outcome>, signal: AbortSignal): Promise<Outcome> {
  const aborted = Promise.withResolvers<Outcome>();
  const onAbort = (): void => aborted.resolve({ error: toAgaroseError(signal.reason, "ABORTED") });
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  return Promise.race([outcome, aborted.promise]).finally(() => signal.removeEventListener("abort", onAbort));
}
