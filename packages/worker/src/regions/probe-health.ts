/**
 * * Decisions about a region by probes only: whether it is down, and whether it is slow. One period of bad probes
 * starts either state and two periods of good ones end it, so that a flapping region stays out. Pure.
 */
import { observeLatency, type LatencyEstimate } from "@agarose/core/sources";

/** The state of one region, or peer, as its probes show it. */
export interface ProbeHealth {
  readonly down: boolean;
  /** Whether it takes much longer than usual. */
  readonly slow: boolean;
  /** How many probes in a row were answered (positive) or not (negative). */
  readonly streak: number;
  /** How many answers in a row took their usual time (positive) or were late (negative). */
  readonly paceStreak: number;
  /** The usual time of a probe, which slow is relative to. Undefined before the first answer. */
  readonly usualMs: number | undefined;
}

/** Failed probes in a row that make a region down: one period of them. */
const DOWN_AFTER = 3;
/** Good probes in a row that bring it back: two periods. */
const UP_AFTER = 6;
/** Late probes in a row that make a region slow. */
const SLOW_AFTER = 3;
/** Punctual probes in a row that end it. */
const PACE_AFTER = 6;
/** A probe is late beyond so many times the usual time and so many milliseconds more. */
const SLOW_FACTOR = 3;
const SLOW_MS_MIN = 50;
/** How far one measurement may be from the estimate, as a factor: a straggler says little about the others. */
export const WINSOR_FACTOR = 2;
/** After an hour of periods of one minute, slow becomes usual. */
const USUAL_AFTER = 180;

type Before = ProbeHealth & LatencyEstimate;

/**
 * Returns the state after `probes` (milliseconds or `Infinity`, in order). The estimate is undefined before any answer.
 */
export function observeHealth(
  before: Before | undefined,
  probes: readonly number[],
): { health: ProbeHealth; estimate: LatencyEstimate | undefined } {
  let { down, slow, streak, paceStreak, usualMs }: ProbeHealth = before ?? UNKNOWN;
  let estimate: LatencyEstimate | undefined = usualMs === undefined ? undefined : before;
  const late: number[] = [];
  for (const ms of probes) {
    streak = Number.isFinite(ms) ? Math.max(1, streak + 1) : Math.min(-1, streak - 1);
    if (streak <= -DOWN_AFTER) down = true;
    if (streak >= UP_AFTER) down = false;
    if (!Number.isFinite(ms)) continue;
    const isLate = usualMs !== undefined && ms > Math.max(SLOW_FACTOR * usualMs, usualMs + SLOW_MS_MIN);
    paceStreak = isLate ? Math.min(-1, paceStreak - 1) : Math.max(1, paceStreak + 1);
    if (isLate) late.push(ms);
    else usualMs = usualMs === undefined ? ms : observeLatency({ meanMs: usualMs, sdMs: 0 }, ms).meanMs;
    if (!slow && paceStreak <= -SLOW_AFTER) {
      slow = true;
      // The estimate restarts: a running mean would make a region that turned slow look fast for minutes.
      estimate = late.slice(0, -1).reduce(observeLatency, observeLatency(undefined, late.at(-1)!));
    } else if (slow && (paceStreak >= PACE_AFTER || paceStreak <= -USUAL_AFTER)) {
      slow = false;
      if (isLate) usualMs = estimate!.meanMs;
      else estimate = observeLatency(undefined, usualMs!);
    } else if (!slow || isLate) {
      estimate = observeLatency(estimate, estimate ? Math.min(ms, WINSOR_FACTOR * estimate.meanMs) : ms);
    }
  }
  return { health: { down, slow, streak, paceStreak, usualMs }, estimate };
}

const UNKNOWN: ProbeHealth = { down: false, slow: false, streak: 0, paceStreak: 0, usualMs: undefined };
