/**
 * Families of schedules for one question each. A mixture of everything meets them too, but only once in hundreds.
 */
import { Dice, noise } from "./noise.ts";
import type { Operation, Planned, Schedule } from "./schedule.ts";

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

/** One region lies while the others answer. Commands come one after the other, readers beside them. */
export function besideHostileRegion(seed: number): Schedule {
  const dice = new Dice(seed, 22);
  const layout = dice.pick([
    { regions: 3, code: { k: 2, m: 1 } },
    { regions: 3, code: { k: 1, m: 2 } },
    { regions: 5, code: { k: 3, m: 2 } },
  ]);
  const next = (id: number): Operation => {
    const verb = id === 0 ? "put" : dice.pick(["put", "put", "put", "rm", "gc", "repair", "upgrade", "get", "get"]);
    if (verb === "put") return { verb, content: dice.chance(0.2) ? dice.below(id + 1) : id };
    if (verb === "repair") return { verb, quick: dice.chance(0.5) };
    if (verb === "get") return { verb, reads: 1 + dice.below(4), pauseMs: dice.pick([0, 100, 4 * HOUR_MS]) };
    return { verb: verb as "rm" };
  };
  let atMs = 0;
  const operations = Array.from({ length: 3 + dice.below(6) }, (_, id): Planned => {
    const operation = next(id);
    const fate = id > 0 && dice.chance(0.15) ? { killedAt: dice.below(60) } : {};
    const planned = { id, atMs, operation, fate };
    atMs += operation.verb === "get" ? 100 : dice.pick([600_000, 600_000, 26 * HOUR_MS]);
    return planned;
  });
  const schedule = { ...family(seed, operations), ...layout, hostile: dice.below(layout.regions) };
  return { ...schedule, regionSkewMs: Array.from({ length: layout.regions }, () => 0), endsWithGc: dice.chance(0.3) };
}

function family(seed: number, operations: readonly Planned[]): Schedule {
  const layout = { regions: 5, code: { k: 3, m: 2 } };
  const nothing = { unconditional: [], startsWithFormat1: false, endsWithGc: false, faults: [] };
  return { seed, ...layout, ...nothing, regionSkewMs: [0, 0, 0, 0, 0], operations };
}
