/**
 * Shares a source among concurrent reads: a fixed number of requests run at a time, and the next one belongs to a read
 * that was served little. The hundred images of a page then complete one after the other, also beside a long download.
 */
import { Limiter, type Waiting } from "@agarose/core/async";

/**
 * Requests to one source at a time. Each of the six connections of HTTP/1.1 has three more requests waiting behind it,
 * and HTTP/2 streams are not held back.
 */
export const REQUESTS_PER_SOURCE = 24;
/**
 * Reads take rounds of this many requests, which is more than a small object needs. With single requests, a hundred
 * images would all complete at the end. Low priority puts a read one round behind, high priority one round ahead.
 */
export const ROUND_REQUESTS = 16;

/** How urgent a read is among others. */
export type Priority = "high" | "low" | "auto";

/** The place of one read in every queue. */
export class Slot {
  readonly priority: Priority;
  /** Requests served, plus those that the priority adds. */
  served: number;

  /** @param header the `priority` header of the request (RFC 9218): urgency 0 to 7, 3 by default. */
  constructor(header: string | null) {
    const urgency = Number(/(?:^|[\s,])u=([0-7])/.exec(header ?? "")?.[1] ?? 3);
    const behind = Math.sign(urgency - 3);
    this.priority = (["high", "auto", "low"] as const)[behind + 1]!;
    this.served = ROUND_REQUESTS * behind;
  }
}

/** The requests to one source. */
export class FairQueue extends Limiter<Slot> {
  constructor() {
    super(REQUESTS_PER_SOURCE);
  }

  override run<T>(work: () => Promise<T>, signal: AbortSignal, slot: Slot): Promise<T> {
    return super.run(
      () => {
        slot.served++;
        return work();
      },
      signal,
      slot,
    );
  }

  /**
   * The first request of the reads with the fewest rounds. Every sixteenth time it is the one that waits longest: a
   * steady flow of new reads must not starve a long one.
   */
  protected override next(waiting: readonly Waiting<Slot>[]): number {
    const rounds = waiting.map(({ owner }) => Math.floor(owner.served / ROUND_REQUESTS));
    return this.finished % ROUND_REQUESTS === 0 ? 0 : rounds.indexOf(Math.min(...rounds));
  }
}
