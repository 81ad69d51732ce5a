/**
 * Families of schedules for one question each. A mixture of everything meets them too, but only once in hundreds.
 */
import { noise } from "./noise.ts";
import type { Planned, Schedule } from "./schedule.ts";

const HOUR_MS = 3_600_000;

/** A put is killed at some await, and the same content is put again. */
export function killedAndRepeated(seed: number): Schedule {
  const killedAt = Math.floor(noise(seed, 21) * 60);
  return family(seed, [
    { id: 0, atMs: 0, operation: { verb: "put", content: 0 }, fate: {} },
    { id: 1, atMs: HOUR_MS, operation: { verb: "put", content: 1 }, fate: { killedAt } },
    { id: 2, atMs: 2 * HOUR_MS, operation: { verb: "put", content: 1 }, fate: {} },
  ]);
}

/** A version that is days old is replaced and cleaned up under a reader. */
export function cleanedUnderReader(seed: number): Schedule {
  const days = 72 * HOUR_MS;
  return family(seed, [
    { id: 0, atMs: 0, operation: { verb: "put", content: 0 }, fate: {} },
    { id: 1, atMs: days, operation: { verb: "get", reads: 1, pauseMs: HOUR_MS }, fate: {} },
    { id: 2, atMs: days + 30_000, operation: { verb: "put", content: 1 }, fate: {} },
    { id: 3, atMs: days + 90_000, operation: { verb: "gc" }, fate: {} },
  ]);
}

/**
 * A version is replaced and marked under a reader, and a run with a wrong clock follows. In half of the schedules the
 * clocks of regions are wrong, too, by so little that gc works with them.
 */
export function cleanedByWrongClock(seed: number): Schedule {
  const days = 72 * HOUR_MS;
  const skewMs = [30 * HOUR_MS, 24 * HOUR_MS + 60_000, -30 * HOUR_MS, 365 * 24 * HOUR_MS][seed % 4]!;
  const smallMs = [0, 0, 60_000, 120_000, -60_000];
  const schedule = family(seed, [
    { id: 0, atMs: 0, operation: { verb: "put", content: 0 }, fate: {} },
    { id: 1, atMs: days, operation: { verb: "get", reads: 1, pauseMs: HOUR_MS }, fate: {} },
    { id: 2, atMs: days + 30_000, operation: { verb: "put", content: 1 }, fate: {} },
    { id: 3, atMs: days + 90_000, operation: { verb: "gc" }, fate: {} },
    { id: 4, atMs: days + 600_000, operation: { verb: "gc" }, fate: { skewMs } },
  ]);
  return seed % 2 === 0 ? schedule : { ...schedule, regionSkewMs: smallMs };
}

function family(seed: number, operations: readonly Planned[]): Schedule {
  const layout = { regions: 5, code: { k: 3, m: 2 } };
  const nothing = { unconditional: [], startsWithFormat1: false, endsWithGc: false, faults: [] };
  return { seed, ...layout, ...nothing, regionSkewMs: [0, 0, 0, 0, 0], operations };
}
