/**
 * Families of schedules for one question each. A mixture of everything meets them too, but only once in hundreds.
 */
import { Dice, noise } from "../world/noise.ts";
import type { Machine } from "../world/publisher.ts";
import type { RegionFault } from "../world/store.ts";
import { repairOf, type Operation, type Planned, type Schedule } from "./schedule.ts";

const HOUR_MS = 3_600_000;
const LAYOUTS = [
  { regions: 3, code: { k: 2, m: 1 } },
  { regions: 3, code: { k: 1, m: 2 } },
  { regions: 5, code: { k: 3, m: 2 } },
] as const;

/** A put is killed at some await, and the same content is put again. */
export function killedAndRepeated(seed: number): Schedule {
  const killedAt = Math.floor(noise(seed, 21) * 60);
  return family(seed, [
    step(0, 0, { verb: "put", content: 0 }),
    step(1, HOUR_MS, { verb: "put", content: 1 }, { killedAt }),
    step(2, 2 * HOUR_MS, { verb: "put", content: 1 }),
  ]);
}

/** A version that is days old is replaced and cleaned up under a reader. */
export function cleanedUnderReader(seed: number): Schedule {
  const days = 72 * HOUR_MS;
  return family(seed, [
    step(0, 0, { verb: "put", content: 0 }),
    step(1, days, { verb: "get", reads: 1, pauseMs: HOUR_MS }),
    step(2, days + 30_000, { verb: "put", content: 1 }),
    step(3, days + 90_000, { verb: "gc" }),
  ]);
}

/**
 * A put takes longer than a mark has to wait, and ends while runs of gc delete. Some puts sleep for hours, some meet
 * others.
 */
export function cleanedUnderWriter(seed: number): Schedule {
  const dice = new Dice(seed, 24);
  const readMs = dice.pick([1, 2, 5]) * HOUR_MS;
  // Two reads for the hash and two for the chunks, of which one region refuses its own. Two more for that one.
  const [chunksMs, endMs] = [HOUR_MS + 4 * readMs, HOUR_MS + 6 * readMs];
  const refused: RegionFault = { region: 0, kind: "refuse", fromMs: chunksMs - 60_000, toMs: chunksMs + 60_000 };
  // A run that pauses between its last look and its deletions lets a put commit there.
  const cleaner = (id: number, atMs: number): Planned => {
    const fate = { suspended: { at: 50 + dice.below(50), ms: dice.pick([2_000, 5_000]) } };
    return { id, atMs, operation: { verb: "gc", olderThanHours: 1 }, fate };
  };
  const isSleeper = dice.chance(0.2);
  const sleepMs = dice.pick([3, 30]) * HOUR_MS;
  const fate = isSleeper ? { suspended: { at: 10 + dice.below(60), ms: sleepMs } } : {};
  const put = step(1, HOUR_MS, { verb: "put", content: 1, readMs }, fate);
  const other = step(2, chunksMs + dice.below(readMs), { verb: "put", content: 2 });
  return {
    ...family(seed, [
      step(0, 0, { verb: "put", content: 0 }),
      put,
      ...(dice.chance(0.3) ? [other] : []),
      cleaner(3, chunksMs + 600_000),
      ...Array.from({ length: 2 }, (_, n) =>
        cleaner(5 + n, endMs + (isSleeper ? sleepMs : 0) - 4_000 + dice.below(4_000)),
      ),
    ]),
    faults: [refused],
  };
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
    step(0, 0, { verb: "put", content: 0 }),
    step(1, days, { verb: "get", reads: 1, pauseMs: HOUR_MS }),
    step(2, days + 30_000, { verb: "put", content: 1 }),
    step(3, days + 90_000, { verb: "gc" }),
    step(4, days + 600_000, { verb: "gc" }, { skewMs }),
  ]);
  return seed % 2 === 0 ? schedule : { ...schedule, regionSkewMs: smallMs };
}

/**
 * Versions of a key with a history are replaced, and gc runs every day. Some of the writers die, and some meet regions
 * that refuse everything for about as long as it takes to copy.
 */
export function replacedUnderKeep(seed: number): Schedule {
  const dice = new Dice(seed, 23);
  const writers = Array.from({ length: 4 }, (_, id): Planned => {
    const operation: Operation = id > 0 && dice.chance(0.3) ? { verb: "rm" } : { verb: "put", content: id };
    const fate = id > 0 && dice.chance(0.5) ? { killedAt: dice.below(60) } : {};
    return { id, atMs: Math.floor(id / 2) * dice.pick([2, 30]) * HOUR_MS + dice.below(300), operation, fate };
  });
  const cleaners = Array.from({ length: 6 }, (_, day): Planned => {
    const fate = dice.chance(0.2) ? { killedAt: dice.below(90) } : {};
    return { id: 4 + day, atMs: (25 * day + 1) * HOUR_MS, operation: { verb: "gc" }, fate };
  });
  const faults = writers.flatMap(({ atMs }): RegionFault[] => {
    const [first, fromMs, ms] = [dice.below(5), atMs + 40 + dice.below(300), 500 + dice.below(500)];
    if (dice.chance(0.6)) return [];
    return [0, 1, 2].map((n) => ({ region: (first + n) % 5, kind: "refuse", fromMs, toMs: fromMs + ms }));
  });
  return { ...family(seed, [...writers, ...cleaners]), keepHours: dice.pick([2, 60, 100]), faults };
}

/** A put dies beside a region that lies, and what it leaves is in the way of the next ones. */
export function killedBesideHostileRegion(seed: number): Schedule {
  const dice = new Dice(seed, 25);
  const put = (id: number, fate: Planned["fate"] = {}): Planned => {
    return { id, atMs: id * HOUR_MS, operation: { verb: "put", content: id }, fate };
  };
  const puts = [put(0), put(1, { killedAt: 5 + dice.below(40) }), put(2), put(3)];
  return { ...family(seed, puts), hostile: dice.below(5) };
}

/** A version is restored at the moment at which others write, die, clean up or meet regions that do not answer. */
export function restoredBesideWriters(seed: number): Schedule {
  const dice = new Dice(seed, 24);
  const startMs = dice.pick([1, 1, 30, 70]) * HOUR_MS;
  const before = twoPuts(600_000);
  const isRemoved = dice.chance(0.4);
  if (isRemoved) before.push(step(2, 1_200_000, { verb: "rm" }));
  const verbs = ["restore", dice.pick(["restore", "put", "recode", "rm", "gc", "repair"]), "get"];
  const beside = verbs.map((verb, index): Planned => {
    const id = 3 + index;
    const atMs = startMs + (index === 0 ? 0 : dice.below(1_000));
    const fate = dice.chance(0.25) ? { killedAt: dice.below(60) } : {};
    return { id, atMs, operation: besideRestore(verb, id, isRemoved), fate };
  });
  const faults = faultsFrom(startMs, 600, dice.pick([0, 0, 1, 2]), dice);
  return { ...family(seed, [...before, ...beside]), keepHours: dice.pick([80, 100]), faults };
}

function besideRestore(verb: string, id: number, isRemoved: boolean): Operation {
  if (verb === "restore") return { verb, isRemoved };
  if (verb === "put") return { verb, content: id };
  if (verb === "repair") return { verb, quick: id % 2 === 0 };
  return verb === "get" ? { verb, reads: 3, pauseMs: 200 } : { verb: verb as "rm" };
}

/**
 * Versions come to the age at which they expire, while others write, die, clean up or meet regions that do not answer.
 * In a fifth of the schedules a region lies, the times of its listings included.
 */
export function expiredBesideWriters(seed: number): Schedule {
  const dice = new Dice(seed, 26);
  const expireHours = dice.pick([20, 48]);
  const dueMs = expireHours * HOUR_MS;
  const isHostile = dice.chance(0.2);
  const secondMs = dice.pick([600_000, 600_000, dueMs / 2]);
  const before: Planned[] = [
    step(0, 0, { verb: "put", content: 0 }),
    step(1, secondMs, { verb: "put", content: 1 }),
    // Regions with different versions are left alone.
    step(2, secondMs + 600_000, { verb: "repair", quick: true }),
  ];
  const startMs = dueMs + dice.pick([-900_000, 900_000, 900_000, dueMs / 2 + 900_000]);
  const verbs = ["expire", dice.pick(["put", "put", "put", "expire", "recode", "rm", "gc", "repair"]), "get", "expire"];
  const beside = verbs.map((verb, index): Planned => {
    const id = before.length + index;
    const atMs = startMs + (isHostile ? index * 1_200_000 : index === 0 ? 0 : dice.below(1_500));
    const fate = dice.chance(0.25) ? { killedAt: dice.below(60) } : {};
    return { id, atMs, operation: besideRemoval(verb, id), fate };
  });
  const faults = faultsFrom(startMs, 600, isHostile ? 0 : dice.pick([0, 0, 1, 2]), dice);
  const schedule = { ...family(seed, [...before, ...beside]), expireHours, faults };
  if (isHostile) return { ...schedule, hostile: dice.below(5) };
  const keep = dice.chance(0.3) ? { keepHours: dice.pick([2, 100]) } : {};
  return { ...schedule, ...keep, regionSkewMs: dice.chance(0.5) ? [0, 0, 60_000, 120_000, -60_000] : [0, 0, 0, 0, 0] };
}

/** A region gets another name, while commands that know it and commands that do not write, die and clean up. */
export function renamedBesideWriters(seed: number): Schedule {
  const dice = new Dice(seed, 27);
  const before = twoPuts(600_000);
  const startMs = dice.pick([1, 30]) * HOUR_MS;
  const others = ["put", "put", "rm", "recode", "repair", "gc", "apply", "restore", "rename"];
  const verbs = ["rename", dice.pick(others), dice.pick(others), "get", "get"];
  const beside = verbs.map((verb, index): Planned => {
    const atMs = startMs + (index === 0 ? 300 : dice.below(1_500));
    const fate = dice.chance(0.25) ? { killedAt: dice.below(60) } : {};
    const id = 2 + index;
    return { id, atMs, operation: besideRestore(verb, id, false), fate };
  });
  const faults = faultsFrom(startMs, 1_000, dice.pick([0, 0, 1, 2]), dice);
  const keep = dice.chance(0.4) ? { keepHours: dice.pick([2, 100]) } : {};
  const schedule = { ...family(seed, [...before, ...beside]), ...keep, faults, endsWithGc: dice.chance(0.3) };
  return { ...schedule, renamedAtMs: startMs + 250 };
}

/**
 * Clients of gateways read, put, remove and put on a condition, while regions come and go. Some of them die or sleep at
 * any await, conditional writers among them. What they were told must be linearizable.
 */
export function besideRegionsThatComeAndGo(seed: number): Schedule {
  const dice = new Dice(seed, 28);
  const layout = dice.pick(LAYOUTS);
  const next = (id: number): Operation => {
    const verb = id === 0 ? "put" : dice.pick(["put", "put", "replace", "replace", "rm", "read", "read", "read"]);
    if (verb === "put" || verb === "replace") return { verb, content: id };
    return verb === "rm" ? { verb } : { verb: "read", reads: 3, pauseMs: dice.pick([1, 200, 3_000]) };
  };
  let atMs = 0;
  const operations = Array.from({ length: 7 + dice.below(4) }, (_, id): Planned => {
    const operation = next(id);
    const suspended = { at: dice.below(60), ms: dice.pick([500, 5_000, 60_000, 3 * HOUR_MS]) };
    const fates = [{ killedAt: dice.below(60) }, { suspended }, {}, {}, {}];
    const planned = { id, atMs, operation, fate: id === 0 ? {} : dice.pick(fates) };
    atMs += dice.pick([0, 50, 300, 1_000, 50_000]);
    return planned;
  });
  const faults = Array.from({ length: 2 + dice.below(5) }, (): RegionFault => {
    const fromMs = dice.below(atMs + 1_000);
    const kind = dice.pick(["refuse", "refuse", "cut", "deaf", "hang"] as const);
    const toMs = fromMs + dice.pick([200, 1_000, 5_000, 40_000]);
    return { region: dice.below(layout.regions), kind, fromMs, toMs };
  });
  const regionSkewMs = Array.from({ length: layout.regions }, () => 0);
  return { ...family(seed, operations), ...layout, regionSkewMs, faults, isLinear: true };
}

/**
 * Extra chunks of an object come and go beside writers, readers that wait between manifest and chunks, repairs and runs
 * of gc. Regions refuse for a while, and some of the processes die.
 */
export function heatedBesideWriters(seed: number): Schedule {
  const dice = new Dice(seed, 33);
  const next = (id: number): Operation => {
    const verb = dice.pick(["heat", "heat", "heat", "put", "rm", "gc", "repair", "get", "get", "verify"]);
    if (verb === "put") return { verb, content: id };
    if (verb === "gc") return { verb, olderThanHours: 1 };
    if (verb === "repair") return repairOf(id, dice);
    return verb === "get" ? { verb, reads: 3, pauseMs: dice.pick([0, 300, 2 * HOUR_MS]) } : { verb: verb as "heat" };
  };
  let atMs = HOUR_MS;
  const operations = Array.from({ length: 5 + dice.below(5) }, (_, at): Planned => {
    const fate = dice.chance(0.25) ? { killedAt: dice.below(80) } : {};
    const planned = { id: at + 2, atMs, operation: next(at + 2), fate };
    atMs += dice.pick([0, 100, 400, 60_000, 3 * HOUR_MS, 26 * HOUR_MS]);
    return planned;
  });
  const faults = Array.from({ length: dice.below(3) }, (): RegionFault => {
    const fromMs = dice.pick(operations).atMs + dice.below(400);
    return { region: dice.below(5), kind: dice.pick(["refuse", "cut", "deaf"] as const), fromMs, toMs: fromMs + 700 };
  });
  const first = [step(0, 0, { verb: "put", content: 0 }), step(1, 600_000, { verb: "heat" })];
  return { ...family(seed, [...first, ...operations]), faults, endsWithGc: dice.chance(0.5) };
}

/** A conditional writer dies at await `seed`, and a minute later another one comes. */
export function afterCrashedConditionalWriter(seed: number): Schedule {
  return {
    ...family(seed, [
      step(0, 0, { verb: "put", content: 0 }),
      step(1, HOUR_MS, { verb: "replace", content: 1 }, { killedAt: seed }),
      step(2, HOUR_MS + 60_000, { verb: "replace", content: 2 }),
    ]),
    isLinear: true,
  };
}

/**
 * Puts and removals of many meet each other and everything else, in half of the schedules at the first version of a key
 * only. They die at any await.
 */
export function manyByBatches(seed: number): Schedule {
  const dice = new Dice(seed, 34);
  const layout = dice.pick([
    { regions: 3, code: { k: 2, m: 1 } },
    { regions: 4, code: { k: 3, m: 1 } },
    { regions: 5, code: { k: 3, m: 2 } },
  ]);
  const others = ["bulk", "bulk", "bulk", "put", "put", "replace", "rm", "repair", "gc", "read", "apply"];
  const next = (id: number): Operation => {
    const verb = id < 2 ? "bulk" : dice.pick(others);
    if (verb === "bulk" && seed % 2 === 1) return { verb, lists: true, ...(dice.chance(0.7) && { content: id }) };
    if (verb === "bulk" || verb === "put" || verb === "replace") return { verb, content: id };
    if (verb === "repair") return repairOf(id, dice);
    if (verb === "gc") return { verb, olderThanHours: 1 };
    return verb === "read" ? { verb, reads: 3, pauseMs: dice.pick([1, 200, 3_000]) } : { verb: verb as "rm" };
  };
  let atMs = HOUR_MS;
  const operations = Array.from({ length: 3 + dice.below(6) }, (_, id): Planned => {
    const operation = next(id);
    const suspended = { at: dice.below(60), ms: dice.pick([500, 5_000, 60_000, 3 * HOUR_MS]) };
    const fates = [{ killedAt: dice.below(70) }, { suspended }, {}, {}];
    const planned = { id, atMs, operation, fate: dice.pick(fates) };
    atMs += dice.pick([0, 0, 30, 150, 500, 2_000, 50_000, 3 * HOUR_MS]);
    return planned;
  });
  const faults = Array.from({ length: dice.below(4) }, (): RegionFault => {
    const fromMs = HOUR_MS + dice.below(atMs - HOUR_MS + 1_000);
    const kind = dice.pick(["refuse", "cut", "deaf", "hang"] as const);
    const toMs = fromMs + dice.pick([200, 1_000, 5_000, 40_000]);
    return { region: dice.below(layout.regions), kind, fromMs, toMs };
  });
  const regionSkewMs = Array.from({ length: layout.regions }, () => dice.pick([0, 0, 60_000, -60_000]));
  return { ...family(seed, operations), ...layout, regionSkewMs, faults, endsWithGc: dice.chance(0.4) };
}

/**
 * Pages upload beside writers, walks and each other: some are abandoned, some wait for hours before they commit, some
 * commit twice, and some begin one upload twice. Servers and pages die at any await.
 */
export function uploadedBesideWriters(seed: number): Schedule {
  const dice = new Dice(seed, 35);
  const verbs = ["upload", "upload", "upload", "upload", "commit", "commit", "put", "bulk", "rm", "gc", "scrub", "get"];
  const next = (id: number): Operation => {
    const verb = id === 0 ? "upload" : dice.pick([...verbs, "repair"]);
    if (verb === "upload") return uploadOf(id, dice);
    if (verb === "commit") return { verb, of: dice.below(id) };
    if (verb === "put" || verb === "bulk") return { verb, content: id };
    if (verb === "gc") return { verb, olderThanHours: 1 };
    if (verb === "scrub") return { verb, isDeep: false };
    if (verb === "repair") return { verb, quick: true };
    return verb === "get" ? { verb, reads: 3, pauseMs: 300 } : { verb: verb as "rm" };
  };
  return besideEachOther(seed, 4 + dice.below(7), next, dice);
}

/** Uploads begin at one moment, end one after the other, and then restart by the tokens that they have used. */
export function begunAtOneMoment(seed: number): Schedule {
  const dice = new Dice(seed, 37);
  const begins = Array.from({ length: 6 }, (_, id): Planned => {
    const token = id % 3;
    const atMs = id < 3 ? dice.below(60) : 120_000 + id * 20_000;
    return step(id, atMs, { verb: "upload", content: 2 * id + 1, token, pauseMs: token * 30_000 });
  });
  return family(seed, begins);
}

function uploadOf(id: number, dice: Dice): Operation {
  const pauseMs = dice.pick([0, 0, 0, 200, 3_000, HOUR_MS / 2, 2 * HOUR_MS]);
  // Of both kinds: one that the page codes has an odd content.
  const content = dice.pick([id, 2 * id + 1, 2 * id + 1, 1]);
  const token = dice.chance(0.3) ? { token: dice.below(2) } : {};
  return { verb: "upload", content, pauseMs, isAbandoned: dice.chance(0.15), ...token };
}

/** The walks of two or three shards run at the same time, beside walks of other shards, and beside writers. */
export function shardsBesideWriters(seed: number): Schedule {
  const dice = new Dice(seed, 36);
  const shards = dice.pick([2, 2, 3]);
  const walk = (): Operation => {
    // A job that is restarted with a different count has overlapping walks.
    const count = dice.pick([shards, shards, shards, 1 + dice.below(4)]);
    const shard = { index: 1 + dice.below(count), count };
    const verb = dice.pick(["gc", "gc", "scrub", "scrub", "expire"] as const);
    if (verb === "gc") return { verb, olderThanHours: dice.pick([1, 24]), shard };
    return verb === "expire" ? { verb, shard } : { verb, isDeep: dice.chance(0.5), shard };
  };
  const next = (id: number): Operation => {
    const verb = id === 0 ? "put" : dice.pick(["walk", "walk", "walk", "put", "upload", "bulk", "rm", "heat", "get"]);
    if (verb === "walk") return walk();
    if (verb === "upload") return uploadOf(id, dice);
    if (verb === "put" || verb === "bulk") return { verb, content: id };
    return verb === "get" ? { verb, reads: 3, pauseMs: dice.pick([1, HOUR_MS]) } : { verb: verb as "rm" };
  };
  const schedule = besideEachOther(seed, 5 + dice.below(8), next, dice);
  const keep = dice.chance(0.3) ? { keepHours: dice.pick([2, 30]) } : {};
  return { ...schedule, ...keep, shards, expireHours: dice.pick([20, 1_000]) };
}

/** Operations at moments near each other, some of which die or sleep, while regions come and go. */
function besideEachOther(seed: number, count: number, next: (id: number) => Operation, dice: Dice): Schedule {
  let atMs = HOUR_MS;
  const operations = Array.from({ length: count }, (_, id): Planned => {
    const operation = next(id);
    const suspended = { at: dice.below(60), ms: dice.pick([500, 5_000, 60_000, 3 * HOUR_MS]) };
    const fates = [{ killedAt: dice.below(90) }, { suspended }, {}, {}, {}];
    const planned = { id, atMs, operation, fate: dice.pick(fates) };
    atMs += dice.pick([0, 0, 30, 150, 500, 2_000, 50_000, 3 * HOUR_MS, 26 * HOUR_MS]);
    return planned;
  });
  const faults = Array.from({ length: dice.below(4) }, (): RegionFault => {
    const fromMs = dice.pick(operations).atMs + dice.below(1_000);
    const kind = dice.pick(["refuse", "cut", "deaf", "hang"] as const);
    return { region: dice.below(5), kind, fromMs, toMs: fromMs + dice.pick([200, 1_000, 5_000, 40_000]) };
  });
  return { ...family(seed, operations), faults, endsWithGc: dice.chance(0.4) };
}

function besideRemoval(verb: string, id: number): Operation {
  if (verb === "put") return { verb, content: id };
  if (verb === "repair") return { verb, quick: id % 2 === 0 };
  if (verb === "recode") return { verb, isDrained: true };
  return verb === "get" ? { verb, reads: 3, pauseMs: 200 } : { verb: verb as "rm" };
}

/** One region lies while the others answer. Commands come one after the other, readers beside them. */
export function besideHostileRegion(seed: number): Schedule {
  const dice = new Dice(seed, 22);
  const layout = dice.pick(LAYOUTS);
  const next = (id: number): Operation => {
    const verb = id === 0 ? "put" : dice.pick(["put", "put", "put", "rm", "gc", "repair", "apply", "get", "get"]);
    if (verb === "put") return { verb, content: dice.chance(0.2) ? dice.below(id + 1) : id };
    if (verb === "repair") return repairOf(id, dice);
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
  const endsWithGc = dice.chance(0.3);
  const keep = dice.chance(0.4) ? { keepHours: dice.pick([2, 30, 80]) } : {};
  return { ...schedule, ...keep, regionSkewMs: Array.from({ length: layout.regions }, () => 0), endsWithGc };
}

/**
 * In a rotation, machines write by the old key, by the new one, and by one that nobody trusts. Regions refuse for a
 * while, so that a version reaches a bare majority; some writers sleep over the end of the rotation, and some die.
 */
export function rotatedBesideWriters(seed: number): Schedule {
  const dice = new Dice(seed, 31);
  const machines: Record<number, Machine> = { 0: "late" };
  const writers = Array.from({ length: 6 }, (_, at): Planned => {
    const id = at + 1;
    machines[id] = dice.pick(["updated", "updated", "late", "old", "old", "wrong"]);
    const operation: Operation = dice.chance(0.2)
      ? { verb: "rm" }
      : dice.chance(0.15)
        ? { verb: "repair", quick: true }
        : { verb: "put", content: id };
    const suspended = { at: dice.below(40), ms: dice.pick([3_000, 8_000, 20_000]) };
    const fate = dice.chance(0.4) ? { suspended } : dice.chance(0.2) ? { killedAt: dice.below(60) } : {};
    return { id, atMs: HOUR_MS + dice.below(20_000), operation, fate };
  });
  const rotation = step(7, HOUR_MS + 5_000 + dice.below(12_000), { verb: "rotate" });
  const faults = [0, 1].map((region): RegionFault => {
    const fromMs = HOUR_MS + dice.below(20_000);
    return {
      region: dice.below(3) + 2 * region,
      kind: "refuse",
      fromMs,
      toMs: fromMs + dice.pick([500, 4_000, 30_000]),
    };
  });
  const first = step(0, 0, { verb: "put", content: 0 });
  return { ...family(seed, [first, ...writers, rotation]), machines, faults: dice.chance(0.7) ? faults : [] };
}

function step(id: number, atMs: number, operation: Operation, fate: Planned["fate"] = {}): Planned {
  return { id, atMs, operation, fate };
}

function twoPuts(apartMs: number): Planned[] {
  return [0, 1].map((id) => ({ id, atMs: id * apartMs, operation: { verb: "put", content: id }, fate: {} }));
}

/** Regions that do not answer for a while, `count` of them, from some moment of the `spanMs` after `startMs`. */
function faultsFrom(startMs: number, spanMs: number, count: number, dice: Dice): RegionFault[] {
  return Array.from({ length: count }, () => {
    const fromMs = startMs + dice.below(spanMs);
    const kind = dice.pick(["refuse", "cut", "deaf", "hang"] as const);
    return { region: dice.below(5), kind, fromMs, toMs: fromMs + dice.pick([200, 1_000, 10_000]) };
  });
}

function family(seed: number, operations: readonly Planned[]): Schedule {
  const layout = { regions: 5, code: { k: 3, m: 2 } };
  const nothing = { unconditional: [], endsWithGc: false, faults: [] };
  return { seed, ...layout, ...nothing, regionSkewMs: [0, 0, 0, 0, 0], operations };
}

/** Every family, by its name. */
export const FAMILIES: Readonly<Record<string, (seed: number) => Schedule>> = {
  afterCrashedConditionalWriter,
  begunAtOneMoment,
  besideHostileRegion,
  besideRegionsThatComeAndGo,
  cleanedByWrongClock,
  cleanedUnderReader,
  cleanedUnderWriter,
  expiredBesideWriters,
  manyByBatches,
  heatedBesideWriters,
  killedAndRepeated,
  killedBesideHostileRegion,
  renamedBesideWriters,
  replacedUnderKeep,
  restoredBesideWriters,
  rotatedBesideWriters,
  shardsBesideWriters,
  uploadedBesideWriters,
};
