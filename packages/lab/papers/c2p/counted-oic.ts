/**
 * OiC as the paper counts it (C2P, section 3.2): 1 when an object was read, because all its segments are then in
 * caches, and a share less with every event of a replaced segment. A lost or late event is never corrected.
 */
export class CountedOic {
  readonly #segments: number;
  readonly #oic = new Map<number, number>();

  /** @param segments of one object. */
  constructor(segments: number) {
    this.#segments = segments;
  }

  read(object: number): void {
    this.#oic.set(object, 1);
  }

  /** So many of the object's segments were replaced. */
  replaced(object: number, count: number): void {
    this.#oic.set(object, Math.max(0, this.oicOf(object) - count / this.#segments));
  }

  /** From 0 to 1; 0 for an object that was never read. */
  oicOf(object: number): number {
    return this.#oic.get(object) ?? 0;
  }
}
