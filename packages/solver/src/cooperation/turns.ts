/**
 * Which PoP may change its cache now. PoPs that plan at the same time would each react to a state that the others are
 * about to leave; one at a time, each plans by what the others have decided.
 *
 * Every PoP holds a ticket, and the lowest is first. After its turn a PoP takes a ticket above all that it knows.
 * Tickets only grow, so an outdated one is too low and never too high: a lost, late or repeated message makes a PoP
 * wait longer, and never lets two PoPs go at once. (Lamport's bakery, CACM 17(8), 1974, without the waiting rooms.)
 */

/** The place of one PoP in the order. */
export interface Ticket {
  readonly pop: string;
  /** Whole number that only grows. */
  readonly turn: number;
}

/** Returns whether `own` comes before all `others`; the name decides between equal tickets. */
export function isFirst(own: Ticket, others: readonly Ticket[]): boolean {
  return others.every((other) => own.turn < other.turn || (own.turn === other.turn && own.pop < other.pop));
}

/** Returns the ticket that follows a turn. */
export function nextTurn(own: Ticket, others: readonly Ticket[]): number {
  return Math.max(own.turn, ...others.map(({ turn }) => turn)) + 1;
}
