/** The smallest forms of schedules that broke a promise when a soak found them. */
import type { Schedule } from "./schedule.ts";

/** By what went wrong. */
export const FOUND: Readonly<Record<string, Schedule>> = {
  "upgrade took a put between its two looks for a stranger's, because the only region with it then hung": {
    seed: 20_307_362,
    regions: 3,
    code: { k: 1, m: 2 },
    unconditional: [],
    regionSkewMs: [0, 0, 0],
    startsWithFormat1: false,
    endsWithGc: false,
    operations: [
      { id: 1, atMs: 0, operation: { verb: "upgrade" }, fate: { skewMs: 0 } },
      { id: 2, atMs: 0, operation: { verb: "put", content: 2, isAbsent: false }, fate: { skewMs: 0 } },
    ],
    faults: [
      { region: 1, kind: "refuse", fromMs: 37, toMs: 1_037 },
      { region: 1, kind: "hang", fromMs: 1_294, toMs: 301_294 },
    ],
  },
};
