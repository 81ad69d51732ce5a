/**
 * One GET that serves the shards of several stripes: a chunk is the concatenation of its shards, so what a read wants of it
 * is one range, and every shard but the first comes without a round trip of its own.
 *
 * The body is read only while somebody waits for a shard, so a slow consumer holds the region back.
 */
import { checkedLength, expectEnd, type BodyReader } from "./body.ts";
import type { StripeShape } from "./manifest.ts";

interface Waiter {
  readonly stripe: StripeShape;
  readonly arrival: PromiseWithResolvers<Uint8Array>;
  isGone: boolean;
}

/** Overtaken shards that a GET may have to read past: that takes less than a new round trip, as long as they are few. */
const OVERTAKEN_MAX = 4;

export class ChunkStream {
  readonly #body: Promise<BodyReader>;
  readonly #abort: AbortController;
  readonly #lastStripe: number;
  readonly #what: string;
  readonly #waiters: Waiter[] = [];
  /** The stripe that whoever comes next has to want. */
  #nextStripe: number;
  #delivered = 0;
  #reading = false;
  #isClosed = false;

  /**
   * @param body of the range from stripe `from` to stripe `lastStripe`; `abort` ends it.
   * @param what names it in errors.
   */
  constructor(body: Promise<BodyReader>, abort: AbortController, from: number, lastStripe: number, what: string) {
    this.#body = body;
    this.#abort = abort;
    this.#nextStripe = from;
    this.#lastStripe = lastStripe;
    this.#what = what;
  }

  /** Whether the stream is at `stripe`, and near enough to it to be asked for its shard. */
  continuesWith(stripe: number): boolean {
    return this.isAt(stripe) && this.#waiters.filter(({ isGone }) => isGone).length <= OVERTAKEN_MAX;
  }

  /** Whether `stripe` is the next one that has not been asked for. */
  isAt(stripe: number): boolean {
    return !this.#isClosed && stripe === this.#nextStripe && stripe <= this.#lastStripe;
  }

  /** Whether later stripes than `stripe` are what the stream is asked for. */
  isPast(stripe: number): boolean {
    return !this.#isClosed && stripe < this.#nextStripe;
  }

  /** Whether any shard has come of it. */
  get hasDelivered(): boolean {
    return this.#delivered > 0;
  }

  /**
   * The shard of `stripe`, which the stream `continuesWith`. Rejects with the signal's reason once that aborts, with
   * CHUNK_WRONG_LENGTH, or as the body does.
   */
  async take(stripe: StripeShape, signal: AbortSignal): Promise<Uint8Array> {
    const waiter: Waiter = { stripe, arrival: Promise.withResolvers(), isGone: false };
    this.#waiters.push(waiter);
    this.#nextStripe = stripe.index + 1;
    const onAbort = (): void => this.#overtaken(waiter, signal.reason);
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    void this.#read();
    try {
      return await waiter.arrival.promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Takes no more shards, and ends the request once nobody waits for one. */
  close(): void {
    this.#isClosed = true;
    if (!this.#isWanted()) this.#abort.abort();
  }

  async #read(): Promise<void> {
    if (this.#reading) return;
    this.#reading = true;
    try {
      const body = await this.#body;
      while (this.#isWanted()) {
        const { stripe, arrival } = this.#waiters[0]!;
        const { index, shardBytes } = stripe;
        const shard = checkedLength(await body.read(shardBytes), shardBytes, this.#what);
        if (index === this.#lastStripe) await expectEnd(body, shardBytes, this.#what);
        this.#waiters.shift();
        this.#delivered++;
        arrival.resolve(shard);
      }
    } catch (error) {
      this.close();
      for (const { arrival } of this.#waiters.splice(0)) arrival.reject(error);
      this.#abort.abort();
    }
    this.#reading = false;
    if (this.#isClosed) this.close();
  }

  /** What was overtaken may be of use to the stripes that come still; without any, it ends. */
  #overtaken(waiter: Waiter, reason: unknown): void {
    waiter.isGone = true;
    waiter.arrival.reject(reason);
    if (this.#isClosed || this.#nextStripe > this.#lastStripe) this.close();
  }

  #isWanted(): boolean {
    return this.#waiters.some(({ isGone }) => !isGone);
  }
}
