/** The smallest forms of schedules that broke a promise when a soak found them. */
import type { Schedule } from "./schedule.ts";

/** By what went wrong. */
export const FOUND: Readonly<Record<string, Schedule>> = {
  "`keys apply` took a put between its two looks for a stranger's, because the only region with it then hung": {
    seed: 20_307_362,
    regions: 3,
    code: { k: 1, m: 2 },
    unconditional: [],
    regionSkewMs: [0, 0, 0],
    endsWithGc: false,
    operations: [
      { id: 1, atMs: 0, operation: { verb: "apply" }, fate: { skewMs: 0 } },
      { id: 2, atMs: 0, operation: { verb: "put", content: 2, isAbsent: false }, fate: { skewMs: 0 } },
    ],
    faults: [
      { region: 1, kind: "refuse", fromMs: 37, toMs: 1_037 },
      { region: 1, kind: "hang", fromMs: 1_294, toMs: 301_294 },
    ],
  },
  "gc deleted a version that was replaced a moment ago by a mark from before its commit": {
    seed: 20_345_890,
    regions: 3,
    code: { k: 2, m: 1 },
    unconditional: [],
    regionSkewMs: [0, 0, 0],
    endsWithGc: true,
    operations: [
      { id: 2, atMs: 1_100, operation: { verb: "put", content: 2, isAbsent: false }, fate: { skewMs: 0 } },
      { id: 3, atMs: 1_400, operation: { verb: "gc" }, fate: {} },
      { id: 6, atMs: 93_606_400, operation: { verb: "get", reads: 3, pauseMs: 14_400_000 }, fate: {} },
      { id: 8, atMs: 93_607_420, operation: { verb: "put", content: 8, isAbsent: false }, fate: {} },
      { id: 9, atMs: 93_607_720, operation: { verb: "gc" }, fate: {} },
    ],
    faults: [],
  },
  "a put that gave up deleted the manifest of a region that answered too late": {
    seed: 30_315_396,
    regions: 5,
    code: { k: 3, m: 2 },
    unconditional: [],
    regionSkewMs: [0, 0, 0, 0, 0],
    endsWithGc: true,
    operations: [
      { id: 5, atMs: 94_207_000, operation: { verb: "put", content: 5, isAbsent: false }, fate: { skewMs: 0 } },
      { id: 6, atMs: 94_207_000, operation: { verb: "put", content: 6, isAbsent: false }, fate: { skewMs: 0 } },
      {
        id: 8,
        atMs: 94_207_120,
        operation: { verb: "put", content: 8, isAbsent: false },
        fate: { skewMs: 0, suspended: { at: 33, ms: 60_000 } },
      },
    ],
    faults: [],
  },
  "a recode failed for one region that did not say whose a dead claim was": {
    seed: 23_217,
    regions: 4,
    code: { k: 3, m: 1 },
    unconditional: [],
    regionSkewMs: [0, 0, 0, 0],
    endsWithGc: false,
    operations: [
      { id: 0, atMs: 0, operation: { verb: "put", content: 0, isAbsent: false }, fate: {} },
      {
        id: 1,
        atMs: 600_000,
        operation: { verb: "put", content: 1, isAbsent: false },
        fate: { skewMs: 0, killedAt: 8 },
      },
      { id: 5, atMs: 94_200_300, operation: { verb: "recode" }, fate: { skewMs: 0 } },
    ],
    faults: [{ region: 3, kind: "refuse", fromMs: 94_201_081, toMs: 94_501_081 }],
  },
};
