/**
 * Origin protection: concurrent reads of one stripe of one version make one set of requests, whoever asks. What is shared
 * is data; requests, timers and signals stay with the invocation that began (the leader), which goes on for the others
 * even when its own client leaves.
 */
import { AgaroseError, toAgaroseError, type Clock, type StripeData } from "@agarose/core";
import { orUndefined } from "../platform/async.ts";

export interface FlightOptions {
  readonly version: string;
  readonly stripe: number;
  readonly read: (signal: AbortSignal) => Promise<StripeData>;
  /** Of the read that wants the stripe. */
  readonly signal: AbortSignal;
  readonly waitUntil: (promise: Promise<unknown>) => void;
}

type Outcome = { readonly data: StripeData } | { readonly error: AgaroseError };

interface Flight {
  readonly outcome: Promise<Outcome>;
  readonly startMs: number;
  /** Reads beside the leader that wait for it. */
  followers: number;
}

/** A flight may die with the invocation that leads it; after this long, one of those who wait begins another. */
const PATIENCE_MS = 10_000;

export class StripeFlights {
  readonly #clock: Clock;
  /** Under way only: nothing is kept, so memory is bounded by what reads hold themselves. */
  readonly #flights = new Map<string, Flight>();
  readonly #counters = { led: 0, followed: 0 };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Stripes that were read, and those that came from another read. */
  get counters(): { readonly led: number; readonly followed: number } {
    return this.#counters;
  }

  get underWay(): number {
    return this.#flights.size;
  }

  /** The stripe. Rejects as `read` does, or with ABORTED once `signal` aborts. */
  async read(options: FlightOptions): Promise<StripeData> {
    const name = `${options.version}:${options.stripe}`;
    this.#forgetDead();
    const flight = this.#flights.get(name);
    const outcome = flight ? await this.#follow(name, flight, options.signal) : await this.#lead(name, options);
    if (!outcome) return this.read(options);
    if ("error" in outcome) throw outcome.error;
    return outcome.data;
  }

  async #lead(name: string, { read, signal, waitUntil }: FlightOptions): Promise<Outcome> {
    this.#counters.led++;
    const abort = new AbortController();
    const outcome = settled(read(abort.signal)).finally(() => this.#end(name, flight));
    const flight: Flight = { outcome, startMs: this.#clock.now(), followers: 0 };
    this.#flights.set(name, flight);
    waitUntil(outcome);
    const leave = (): void => {
      if (flight.followers > 0) return;
      this.#end(name, flight);
      abort.abort(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await unlessAborted(outcome, signal);
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  /** What comes of another read's flight; undefined when it takes too long, and may have died. */
  async #follow(name: string, flight: Flight, signal: AbortSignal): Promise<Outcome | undefined> {
    this.#counters.followed++;
    flight.followers++;
    try {
      const leftMs = flight.startMs + PATIENCE_MS - this.#clock.now();
      const outcome = await orUndefined(unlessAborted(flight.outcome, signal), leftMs, this.#clock);
      if (!outcome) this.#end(name, flight);
      return outcome;
    } finally {
      flight.followers--;
    }
  }

  /** Oldest first: a flight that died with its invocation must not make a read wait hours later, nor stay in memory. */
  #forgetDead(): void {
    const sinceMs = this.#clock.now() - PATIENCE_MS;
    for (const [name, { startMs }] of this.#flights) {
      if (startMs > sinceMs) return;
      this.#flights.delete(name);
    }
  }

  #end(name: string, flight: Flight): void {
    if (this.#flights.get(name) === flight) this.#flights.delete(name);
  }
}

function settled(reading: Promise<StripeData>): Promise<Outcome> {
  return reading.then(
    (data) => ({ data }),
    (error: unknown) => ({ error: toAgaroseError(error) }),
  );
}

/** `outcome`, or ABORTED as soon as `signal` aborts. */
function unlessAborted(outcome: Promise<Outcome>, signal: AbortSignal): Promise<Outcome> {
  const aborted = Promise.withResolvers<Outcome>();
  const onAbort = (): void => aborted.resolve({ error: toAgaroseError(signal.reason, "ABORTED") });
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  return Promise.race([outcome, aborted.promise]).finally(() => signal.removeEventListener("abort", onAbort));
}
