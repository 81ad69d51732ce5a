/**
 * Runs schedule after schedule until one breaks a promise, then shrinks it.
 */
import type { Engines } from "../engines.ts";
import type { Schedule } from "./schedule.ts";
import { shrink } from "./shrink.ts";
import { noEvents, simulate, type Events } from "../simulation.ts";

/** The schedules to search. */
export interface Search {
  readonly engines: Engines;
  readonly firstSeed: number;
  /** How many at most. */
  readonly schedules: number;
  /** Stop after this time. Default: never. */
  readonly limitMs?: number;
  readonly scheduleOf: (seed: number) => Schedule;
  readonly onProgress?: (done: number) => void;
}

/** A broken promise. */
export interface Failure {
  readonly seed: number;
  readonly violation: string;
  /** The smallest schedule found that breaks a promise. */
  readonly smallest: Schedule;
  readonly trace: readonly string[];
}

export interface SearchResult {
  readonly schedules: number;
  readonly events: Events;
  readonly ms: number;
  readonly failure?: Failure;
  /** For people. */
  readonly text: string;
}

const PROGRESS = 1_000;

/** Runs the schedules of successive seeds. */
export async function search({
  engines,
  firstSeed,
  schedules,
  limitMs = Number.POSITIVE_INFINITY,
  scheduleOf,
  onProgress,
}: Search): Promise<SearchResult> {
  const startedMs = performance.now();
  const elapsedMs = (): number => Math.round(performance.now() - startedMs);
  const total = noEvents();
  let done = 0;
  while (done < schedules && elapsedMs() < limitMs) {
    const schedule = scheduleOf(firstSeed + done);
    const { violation, events } = await simulate(schedule, engines);
    done++;
    for (const name of Object.keys(total) as (keyof Events)[]) total[name] += events[name];
    if (violation !== undefined) {
      const ms = elapsedMs();
      const failure = await explain(schedule, violation, engines);
      return { schedules: done, events: total, ms, failure, text: textOf(failure, done, ms) };
    }
    if (done % PROGRESS === 0) onProgress?.(done);
  }
  const ms = elapsedMs();
  const counts = Object.entries(total).map(([name, count]) => `${count} ${name}`);
  const text = `${done} schedules from seed ${firstSeed} in ${ms} ms kept every promise (${counts.join(", ")})`;
  return { schedules: done, events: total, ms, text };
}

/** Shrinks a failing schedule and traces it. */
export async function explain(schedule: Schedule, first: string, engines: Engines): Promise<Failure> {
  const smallest = await shrink(schedule, first, engines);
  const { violation, trace } = await simulate(smallest, engines, true);
  return { seed: schedule.seed, violation: violation ?? "it did not happen again", smallest, trace };
}

function textOf({ seed, violation, smallest, trace }: Failure, schedules: number, ms: number): string {
  return [
    `seed ${seed} breaks a promise (schedule ${schedules}, after ${ms} ms):`,
    `  ${violation}`,
    `the smallest schedule that does:`,
    `  ${JSON.stringify(smallest)}`,
    ...trace,
    `  ${violation}`,
  ].join("\n");
}
