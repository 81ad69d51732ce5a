/**
 * Which cached object gives up a chunk (C2P, Algorithms 1 and 2). The object of which the least is cached goes first,
 * since a read has to wait for its missing chunks anyway. Among equals the one read longest ago, or least often, goes
 * first.
 *
 * Departure: Algorithm 1 orders by time when two reads were close and by hits when they were not. That is not
 * transitive (a before b before c before a is possible), so it cannot sort. We pass over the candidates once and keep
 * the lesser of two. The outcome depends on their order, which should be least recently read first.
 */
import { asNumber } from "./checks.ts";

/** A cached object as the replacement sees it. */
export interface ReplacementCandidate {
  /** Fraction of the object that is cached anywhere, 0 to 1. */
  readonly oic: number;
  /** Reads, decayed until now; >= 0. */
  readonly hits: number;
  /** Time of the last read in ms, finite. */
  readonly readMs: number;
}

/** Algorithm 1: negative when `a` should leave before `b`. Reads closer than `affinityMs` are ordered by time. */
export function compareLru(a: ReplacementCandidate, b: ReplacementCandidate, affinityMs: number): number {
  if (Math.abs(a.readMs - b.readMs) < affinityMs && a.readMs !== b.readMs) return a.readMs - b.readMs;
  return a.hits - b.hits;
}

/** Algorithm 2: first by OiC, then by Algorithm 1. */
export function compareC2p(a: ReplacementCandidate, b: ReplacementCandidate, affinityMs: number): number {
  return a.oic === b.oic ? compareLru(a, b, affinityMs) : a.oic - b.oic;
}

/**
 * Returns the candidate that leaves first, the first of equals, or undefined without candidates. Throws REQUEST_INVALID
 * for numbers out of range.
 */
export function chooseVictim<T extends ReplacementCandidate>(
  candidates: Iterable<T>,
  affinityMs: number,
  compare: typeof compareC2p = compareC2p,
): T | undefined {
  asNumber(affinityMs, "affinityMs", 0);
  let victim: T | undefined;
  for (const candidate of candidates) {
    if (!isSound(candidate)) refuse(candidate);
    if (!victim || compare(candidate, victim, affinityMs) < 0) victim = candidate;
  }
  return victim;
}

function isSound({ oic, hits, readMs }: ReplacementCandidate): boolean {
  return oic >= 0 && hits >= 0 && Number.isFinite(oic + hits + readMs);
}

function refuse({ oic, hits, readMs }: ReplacementCandidate): void {
  asNumber(oic, "oic", 0);
  asNumber(hits, "hits", 0);
  asNumber(readMs, "readMs");
}
