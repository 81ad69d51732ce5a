/**
 * Makes a failing schedule smaller: it omits what the failure does not need.
 */
import type { Engines } from "../engines.ts";
import type { Planned, Schedule } from "./schedule.ts";
import { simulate } from "../simulation.ts";

/** The smallest schedule found that still breaks the same promise. */
export async function shrink(schedule: Schedule, violation: string, engines: Engines): Promise<Schedule> {
  let smallest = schedule;
  for (;;) {
    const smaller = await firstFailing(candidatesOf(smallest), kindOf(violation), engines);
    if (!smaller) return smallest;
    smallest = smaller;
  }
}

async function firstFailing(
  candidates: Iterable<Schedule>,
  kind: string,
  engines: Engines,
): Promise<Schedule | undefined> {
  for (const candidate of candidates) {
    const { violation } = await simulate(candidate, engines);
    if (violation !== undefined && kindOf(violation) === kind) return candidate;
  }
  return undefined;
}

/** A violation without its numbers. */
function kindOf(violation: string): string {
  return violation.replaceAll(/\d+|none/g, "0").slice(0, 60);
}

/** Schedules that lack one thing each. */
function* candidatesOf(schedule: Schedule): Generator<Schedule> {
  const { operations, faults, regionSkewMs } = schedule;
  for (const planned of operations) yield { ...schedule, operations: operations.filter((other) => other !== planned) };
  for (const fault of faults) yield { ...schedule, faults: faults.filter((other) => other !== fault) };
  for (const planned of operations) {
    for (const fate of simplerFates(planned)) {
      yield { ...schedule, operations: operations.map((other) => (other === planned ? { ...other, fate } : other)) };
    }
  }
  if (regionSkewMs.some((ms) => ms !== 0)) yield { ...schedule, regionSkewMs: regionSkewMs.map(() => 0) };
  const { keepHours, ...withoutKeep } = schedule;
  if (keepHours !== undefined) yield withoutKeep;
}

function* simplerFates({ fate }: Planned): Generator<Planned["fate"]> {
  const { killedAt, suspended, skewMs } = fate;
  if (killedAt !== undefined) yield { ...(suspended && { suspended }), ...(skewMs && { skewMs }) };
  if (suspended) yield { ...(killedAt !== undefined && { killedAt }), ...(skewMs && { skewMs }) };
  if (skewMs) yield { ...(killedAt !== undefined && { killedAt }), ...(suspended && { suspended }) };
}
