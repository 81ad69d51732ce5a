/**
 * Whose turn it is to change what depends on others. PoPs that plan at the same time would each answer to what the others
 * were about to leave; one at a time, each finds what the others have settled on.
 *
 * Everyone holds a ticket and the lowest is first. After its turn a PoP takes a ticket behind all it knows. A ticket only
 * grows, so one heard of late is too low rather than too high: a message that is lost, late or doubled makes a PoP wait
 * longer, and never lets two go at once. (Lamport's bakery, CACM 17(8), 1974, in the part that holds without waiting rooms.)
 */

export interface Ticket {
  readonly pop: string;
  /** Whole number that only grows. */
  readonly turn: number;
}

/** Whether `own` comes before all `others`; equal tickets go by name. */
export function isFirst(own: Ticket, others: readonly Ticket[]): boolean {
  return others.every((other) => own.turn < other.turn || (own.turn === other.turn && own.pop < other.pop));
}

/** The ticket after a turn. */
export function nextTurn(own: Ticket, others: readonly Ticket[]): number {
  return Math.max(own.turn, ...others.map(({ turn }) => turn)) + 1;
}
