/**
 * Progress of work that may take minutes: a bar with the time left on a terminal, and a line now and then elsewhere.
 */
import { SingleBar } from "cli-progress";
import { logLine } from "./output.ts";

/** Reports the step under way, and the share of all work that is done, from 0 to 1. */
export type ShowProgress = (step: string, done: number) => void;

/** Work that is going to take longer is announced. */
const LONG_MS = 30_000;
/** After this time an estimate is worth something. */
const ESTIMATE_MS = 2_000;
const LINE_EVERY_MS = 15_000;

/** Options of `withProgress`, with ports for tests. */
export interface ProgressOptions {
  /** What the user can do to wait less, printed with the announcement of long work. */
  readonly hint?: string;
  /** Default: `performance.now`. */
  readonly now?: () => number;
  /** Default: a line on stderr. */
  readonly log?: (line: string) => void;
  /** Whether to draw a bar instead of lines. Default: whether stderr is a terminal. */
  readonly isTerminal?: boolean;
}

/** Runs `work` and shows its progress on stderr until it ends. Work of less than half a minute prints no line. */
export async function withProgress<T>(
  work: (show: ShowProgress) => T | Promise<T>,
  { hint, now = () => performance.now(), log = logLine, isTerminal = process.stderr.isTTY }: ProgressOptions = {},
): Promise<T> {
  const startedMs = now();
  if (isTerminal) return withBar(work, (done) => timeLeft(now() - startedMs, done));
  let isAnnounced = false;
  let lineMs = startedMs;
  return work((step, done) => {
    const elapsedMs = now() - startedMs;
    const totalMs = elapsedMs / done;
    if (elapsedMs < ESTIMATE_MS || !(totalMs >= LONG_MS)) return;
    if (!isAnnounced) {
      isAnnounced = true;
      lineMs = now();
      log(`this takes about ${formatDuration(totalMs)} or more${hint === undefined ? "" : `: ${hint}`}`);
    } else if (now() - lineMs >= LINE_EVERY_MS) {
      lineMs = now();
      log(`${step}: ${Math.floor(100 * done)}% of all, ${timeLeft(elapsedMs, done)}`);
    }
  });
}

async function withBar<T>(work: (show: ShowProgress) => T | Promise<T>, left: (done: number) => string): Promise<T> {
  const bar = new SingleBar({
    stream: process.stderr,
    clearOnComplete: true,
    hideCursor: true,
    format: "{step} {bar} {percentage}% · {left}",
  });
  bar.start(100, 0, { step: "starting", left: "" });
  try {
    return await work((step, done) => bar.update(Math.floor(100 * done), { step, left: left(done) }));
  } finally {
    bar.stop();
  }
}

function timeLeft(elapsedMs: number, done: number): string {
  if (elapsedMs < ESTIMATE_MS || done <= 0) return "";
  return `about ${formatDuration((elapsedMs / done) * (1 - done))} left`;
}

/** A duration for people: `40 s`, `8 min 40 s`. Below ten minutes to the second, above to the minute. */
export function formatDuration(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return seconds < 600 && seconds % 60 > 0 ? `${minutes} min ${seconds % 60} s` : `${Math.round(seconds / 60)} min`;
}
