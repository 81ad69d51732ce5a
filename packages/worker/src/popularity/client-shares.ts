/**
 * Bounds what one client can add to popularity by requests of its own, and one network as some clients. Fixed memory,
 * however many clients come. Pure.
 *
 * A frequency sketch counts the requests of a term by client, and by client and key. It may overestimate when very many
 * clients come, so that a few requests do not count; it never lets one client exceed its share.
 */
import { FrequencySketch } from "./frequency-sketch.ts";
import { clientShareName } from "../runtime/client-address.ts";

/** The length of a term. */
export const TERM_MS = 5 * 60_000;
/** Requests of one key by one client that count in a term. */
export const READS_PER_KEY_MAX = 20;
/** Requests of all keys by one client that count in a term; a counter of the sketch holds up to 255. */
export const REQUESTS_PER_CLIENT_MAX = 250;
const PAIRS = 16_384;

/** The shares of the clients of one isolate. */
export class ClientShares {
  readonly #now: () => number;
  #term = 0;
  #sketch = new FrequencySketch(PAIRS);

  /** @param now milliseconds since 1970. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns whether a request of `client` counts. Without a client address there is no share. */
  admits(client: string | undefined, key: string): boolean {
    if (client === undefined) return true;
    const term = Math.floor(this.#now() / TERM_MS);
    if (term !== this.#term) this.#sketch = new FrequencySketch(PAIRS);
    this.#term = term;
    const name = clientShareName(client);
    const pair = `${name}\n${key}`;
    const isWithin =
      this.#sketch.estimate(pair) < READS_PER_KEY_MAX && this.#sketch.estimate(name) < REQUESTS_PER_CLIENT_MAX;
    if (!isWithin) return false;
    this.#sketch.add(pair);
    this.#sketch.add(name);
    return true;
  }
}
