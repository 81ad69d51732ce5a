/** How hits fade (C2P, section 3.3): times 0.8 for each 60 seconds without a read. */

const DECAY = 0.8;
const DECAY_AFTER_MS = 60_000;

/**
 * Returns the hits as of `nowMs` of an object last read at `readMs`. A clock that is behind leaves them as they are.
 */
export function decayedHits(hits: number, readMs: number, nowMs: number): number {
  const idleMs = Math.max(0, nowMs - readMs);
  return hits * DECAY ** Math.floor(idleMs / DECAY_AFTER_MS);
}
