/**
 * A schedule: which operations run when, what befalls their processes, and which regions misbehave. A seed makes one.
 */
import type { Shard } from "../../../src/listing/shard.ts";
import { Dice } from "../world/noise.ts";
import type { Machine } from "../world/publisher.ts";
import type { Fate } from "../world/process.ts";
import type { FaultKind, RegionFault } from "../world/store.ts";

/** A walk over a part of the keys, beside others. Default: over all. */
interface Sharded {
  readonly shard?: Shard | undefined;
}

/** The operation of a process. All operations work on one key. */
export type Operation =
  /**
   * `content` names the bytes. With `isAbsent` it goes by a listing, maybe an old one, that did not have the key. Each
   * read of its file takes `readMs`.
   */
  | { readonly verb: "put"; readonly content: number; readonly isAbsent?: boolean; readonly readMs?: number }
  /**
   * Puts by a batch that claims the key beside others, or removes where there is no content. It goes by a listing, and
   * one that did not have the key unless it `lists`.
   */
  | { readonly verb: "bulk"; readonly content?: number; readonly lists?: boolean }
  /**
   * A page begins an upload, stores its chunks, waits, and commits unless it is abandoned. Uploads of one `token` begin
   * the same upload.
   */
  | {
      readonly verb: "upload";
      readonly content: number;
      readonly token?: number;
      readonly pauseMs?: number;
      readonly isAbandoned?: boolean;
    }
  /** The page of operation `of` commits once more at another server, as after an answer that was lost. */
  | { readonly verb: "commit"; readonly of: number }
  | { readonly verb: "rm" | "apply" | "verify" }
  /** Removes by `expireHours` of the schedule. */
  | ({ readonly verb: "expire" } & Sharded)
  /** Takes the first key of the publisher out of force. */
  | { readonly verb: "rotate" }
  /** Stores extra chunks of the object, or takes away those that it has. */
  | { readonly verb: "heat" }
  /** Gives the manifest the names of `renamedAtMs`, as a migration does. */
  | { readonly verb: "rename" }
  /** With `isDrained` the first region gets no chunk, else the code is another one. */
  | { readonly verb: "recode"; readonly isDrained?: boolean }
  /** Marks have to wait for `olderThanHours`, a day by default. */
  | ({ readonly verb: "gc"; readonly olderThanHours?: number } & Sharded)
  /** Brings the newest kept version back, with `isRemoved` of a removed object only. */
  | { readonly verb: "restore"; readonly isRemoved: boolean }
  | { readonly verb: "repair"; readonly quick: boolean }
  /** With `isDeep` it reads the object in full. */
  | ({ readonly verb: "scrub"; readonly isDeep: boolean } & Sharded)
  /** Reads `reads` times with the memory of a client, waiting between manifest and chunks, and between reads. */
  | { readonly verb: "get"; readonly reads: number; readonly pauseMs: number }
  /** Reads strongly, as a gateway does. */
  | { readonly verb: "read"; readonly reads: number; readonly pauseMs: number }
  /** Reads strongly, then puts on the condition that what it has read is still there. */
  | { readonly verb: "replace"; readonly content: number };

/** An operation in its own process. */
export interface Planned {
  readonly id: number;
  readonly atMs: number;
  readonly operation: Operation;
  readonly fate: Fate;
}

export interface Schedule {
  readonly seed: number;
  readonly regions: number;
  readonly code: { readonly k: number; readonly m: number };
  /** Regions whose stores ignore conditions. */
  readonly unconditional: readonly number[];
  /** The region that lies, until everything is healed. Default: none. */
  readonly hostile?: number;
  /** How many hours a version of the key stays after it was replaced. Default: not at all. */
  readonly keepHours?: number;
  /** How many hours old a version must be for `expire` to remove it. Default: none is removed. */
  readonly expireHours?: number;
  /** From when on processes that start know the first region by another name. Default: never. */
  readonly renamedAtMs?: number;
  /** The part of a rotation that the machine of each operation lacks. Default: all have one configuration. */
  readonly machines?: Readonly<Record<number, Machine>>;
  /** How wrong the clock of each region is. */
  readonly regionSkewMs: readonly number[];
  /** How many walks at the same time heal it and clean it up. Default: one. */
  readonly shards?: number;
  /** Whether two runs of gc, days later, end it. */
  readonly endsWithGc: boolean;
  /** Whether what the clients were told must be linearizable. It has only verbs whose entries the history has. */
  readonly isLinear?: boolean;
  readonly operations: readonly Planned[];
  readonly faults: readonly RegionFault[];
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const LAYOUTS = [
  { regions: 3, code: { k: 2, m: 1 } },
  { regions: 3, code: { k: 1, m: 2 } },
  { regions: 4, code: { k: 3, m: 1 } },
  { regions: 5, code: { k: 3, m: 2 } },
] as const;
const VERBS = ["put", "put", "put", "put", "rm", "rm", "gc", "gc", "repair", "repair", "apply", "get", "get", "verify"];
const FAULTS: readonly FaultKind[] = ["refuse", "cut", "deaf", "hang"];

/** The schedule of a seed: at random, or a duel. */
export function scheduleOf(seed: number): Schedule {
  const schedule = withHeat(new Dice(seed, 8).chance(0.25) ? duelOf(seed) : mixtureOf(seed));
  // Numbers of their own, so that a seed plans the same operations with a history as without one.
  const dice = new Dice(seed, 10);
  if (!dice.chance(0.4)) return withRecodes(schedule, dice);
  const keepHours = dice.pick([2, 20, 30, 80]);
  const operations = schedule.operations.map((planned): Planned => {
    const isReplaced = planned.id > 0 && planned.operation.verb === "put" && dice.chance(0.3);
    return isReplaced ? { ...planned, operation: { verb: "restore", isRemoved: dice.chance(0.2) } } : planned;
  });
  return { ...schedule, keepHours, operations };
}

/** Some operations that change nothing for readers store extra chunks, or take them away. */
function withHeat(schedule: Schedule): Schedule {
  const dice = new Dice(schedule.seed, 12);
  const operations = schedule.operations.map((planned): Planned => {
    const isReplaced = ["apply", "verify", "repair"].includes(planned.operation.verb) && dice.chance(0.4);
    return isReplaced ? { ...planned, operation: { verb: "heat" } } : planned;
  });
  return { ...schedule, operations };
}

/** Some puts over another version store what is there again, under another code. */
function withRecodes(schedule: Schedule, dice: Dice): Schedule {
  const operations = schedule.operations.map((planned): Planned => {
    const isReplaced = planned.id > 0 && planned.operation.verb === "put" && dice.chance(0.2);
    // By its place, so that it takes no throw of the dice.
    return isReplaced ? { ...planned, operation: { verb: "recode", isDrained: planned.id % 2 === 1 } } : planned;
  });
  return { ...schedule, operations };
}

/** Writers and repairs meet at one moment, in which most regions do not take what they write. */
function duelOf(seed: number): Schedule {
  const dice = new Dice(seed, 9);
  const layout = dice.pick(LAYOUTS);
  const startMs = 600 * SECOND_MS;
  const verbs = [dice.pick(["put", "put", "rm"]), "repair", dice.pick(["repair", "put", "put", "rm", "apply"])];
  // A writer that sleeps between its write and what follows lets others come between.
  const sleepMs = dice.pick([0, 0, 5 * SECOND_MS, 30 * SECOND_MS]);
  const operations = ["put", ...verbs].map((verb, id): Planned => {
    const isSleeper = id === 1 && sleepMs > 0;
    const fate = isSleeper
      ? { suspended: { at: 9 + dice.below(30), ms: sleepMs } }
      : dice.chance(0.1)
        ? fateOf(dice, 0, true)
        : {};
    const atMs = id === 0 ? 0 : startMs + (id === 1 ? 0 : dice.below(1_500 + sleepMs));
    const operation = operationOf(verb, id, dice);
    // A second put of the same content is content with what the first one has written.
    return { id, atMs, operation: verb === "put" && id > 1 ? { verb, content: 1 } : operation, fate };
  });
  const kind = dice.pick(FAULTS);
  const first = dice.below(layout.regions);
  const faults = Array.from({ length: layout.regions - 1 }, (_, index): RegionFault => {
    const region = (first + index) % layout.regions;
    const fromMs = startMs + 100 + dice.below(500);
    const own = dice.chance(0.7) ? kind : dice.pick(FAULTS);
    return { region, kind: own, fromMs, toMs: fromMs + dice.pick([200, 500, SECOND_MS]) };
  });
  return {
    seed,
    ...layout,
    unconditional: [],
    regionSkewMs: Array.from({ length: layout.regions }, () => 0),
    endsWithGc: false,
    operations,
    faults,
  };
}

/** Any operations in any order. */
function mixtureOf(seed: number): Schedule {
  const dice = new Dice(seed, 7);
  const layout = dice.pick(LAYOUTS);
  // Stores without conditions order only what does not happen at the same moment.
  const isSpaced = dice.chance(0.1);
  const hasFaults = dice.chance(0.6);
  const hasFates = dice.chance(0.6);
  const isSkewed = dice.chance(0.3);
  // Clocks that are wrong by hours make gc refuse, and by minutes it works with them.
  const skewsMs = isSkewed
    ? dice.pick([
        [0, -HOUR_MS, HOUR_MS],
        [0, -2 * MINUTE_MS, 2 * MINUTE_MS],
      ])
    : [0];
  const skewOf = (): number => (isSkewed ? dice.pick([...skewsMs, 30 * HOUR_MS]) : 0);
  const operations: Planned[] = [];
  const eras = dice.pick([1, 1, 1, 2, 3]);
  let startMs = 0;
  for (let era = 0; era < eras; era++) {
    let atMs = startMs;
    const count = 2 + dice.below(4);
    for (let n = 0; n < count; n++) {
      const id = operations.length;
      const verb = era === 0 && n === 0 && dice.chance(0.7) ? "put" : dice.pick(VERBS);
      const isSeparate = isSpaced || (era === 0 && n === 0 && dice.chance(0.5));
      operations.push({
        id,
        atMs,
        operation: isSpaced ? withoutListing(operationOf(verb, id, dice)) : operationOf(verb, id, dice),
        fate: isSpaced || hasFates ? fateOf(dice, skewOf(), isSpaced) : { skewMs: skewOf() },
      });
      atMs += isSeparate ? 600 * SECOND_MS : dice.pick([0, 0, 20, 100, 300, SECOND_MS, 5 * SECOND_MS]);
    }
    startMs = atMs + dice.pick([10 * SECOND_MS, 26 * HOUR_MS, 26 * HOUR_MS]);
  }
  return {
    seed,
    ...layout,
    unconditional: isSpaced ? Array.from({ length: layout.regions }, (_, region) => region) : [],
    regionSkewMs: Array.from({ length: layout.regions }, () => dice.pick(skewsMs)),
    endsWithGc: dice.chance(0.2),
    operations,
    faults: hasFaults && !isSpaced ? faultsOf(layout.regions, operations, dice) : [],
  };
}

function operationOf(verb: string, id: number, dice: Dice): Operation {
  switch (verb) {
    case "put":
      // Sometimes what an earlier put has stored.
      return { verb, content: dice.chance(0.35) ? dice.below(id + 1) : id, isAbsent: dice.chance(0.2) };
    case "repair":
      return repairOf(id, dice);
    case "get":
      return { verb, reads: 1 + dice.below(4), pauseMs: dice.pick([0, 0, 100, SECOND_MS, 4 * HOUR_MS]) };
    default:
      return { verb: verb as "rm" };
  }
}

/** A repair of the object, or of all in a walk: by its place, so that it takes one throw of the dice. */
export function repairOf(id: number, dice: Dice): Operation {
  const quick = dice.chance(0.5);
  return id % 2 === 1 ? { verb: "scrub", isDeep: !quick } : { verb: "repair", quick };
}

/** Stores that ignore conditions take what is written over what a listing has missed. */
function withoutListing(operation: Operation): Operation {
  return operation.verb === "put" ? { ...operation, isAbsent: false } : operation;
}

function fateOf(dice: Dice, skewMs: number, isSpaced: boolean): Fate {
  if (dice.chance(0.4)) return { skewMs, killedAt: dice.below(60) };
  if (isSpaced || !dice.chance(0.3)) return { skewMs };
  const ms = dice.pick([SECOND_MS, 10 * SECOND_MS, 60 * SECOND_MS, 26 * HOUR_MS]);
  return { skewMs, suspended: { at: dice.below(40), ms } };
}

function faultsOf(regions: number, operations: readonly Planned[], dice: Dice): RegionFault[] {
  return Array.from({ length: 1 + dice.below(4) }, () => {
    const fromMs = dice.pick(operations).atMs + dice.below(800);
    const toMs = fromMs + dice.pick([50, 300, SECOND_MS, 10 * SECOND_MS, 300 * SECOND_MS]);
    return { region: dice.below(regions), kind: dice.pick(FAULTS), fromMs, toMs };
  });
}
