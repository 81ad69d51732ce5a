/**
 * The progress of work that may take minutes: a bar with the time left on a terminal, a line now and then elsewhere, or
 * reports for a program.
 */
import { SingleBar } from "cli-progress";
import { formatBytes, logLine, type OutputOptions } from "./output.ts";

/** Progress in bytes, as a command reports it. */
export type Progress = Pick<Meter, "addTotal" | "add" | "stop">;

/** How far a command is. */
export interface ProgressReport {
  readonly bytesDone: number;
  /** The total as far as it is known. It grows while more files are found. */
  readonly bytesInAll: number;
  /** Since the first byte. */
  readonly bytesPerSecond: number;
  readonly secondsLeft: number;
}

/** Where progress goes. With `quiet` or `json` it stays silent on stderr. */
export interface ProgressOptions extends OutputOptions {
  /** Gets a report every five seconds in which bytes moved. */
  readonly onReport?: ((report: ProgressReport) => void) | undefined;
  /** How the user can wait less, for the first line. */
  readonly hint?: string;
  /** Default: whether stderr is one. */
  readonly isTerminal?: boolean;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
  /** Default: stderr. */
  readonly log?: (line: string) => void;
}

/** Reports the step under way, and the share of all work that is done, from 0 to 1. */
export type ShowProgress = (step: string, done: number) => void;

const REPORT_MS = 5_000;
/** A log of CI with a line every 15 s stays readable. */
const LINE_MS = 15_000;

/** Returns what draws, prints or reports the progress of `label` in bytes. */
export function startProgress(label: string, options: ProgressOptions): Progress {
  return new Meter(label, options, ({ bytesDone, bytesInAll, bytesPerSecond }) => {
    return `${formatBytes(bytesDone)} of ${formatBytes(bytesInAll)}, ${formatBytes(bytesPerSecond)}/s`;
  });
}

/** Runs `work`, which is done in steps, and shows its progress until it ends. */
export async function withProgress<T>(
  work: (show: ShowProgress) => T | Promise<T>,
  options: ProgressOptions,
): Promise<T> {
  const meter = new Meter("starting", options, ({ bytesDone }) => `${Math.floor(100 * bytesDone)}% of all`);
  meter.addTotal(1);
  try {
    return await work((step, done) => meter.set(step, done));
  } finally {
    meter.stop();
  }
}

/** Counts what is done, and the time that it takes. Short work prints no line. */
class Meter {
  #label: string;
  #done = 0;
  #total = 0;
  #shownMs: number;
  #hint: string;
  readonly #now: () => number;
  readonly #startedMs: number;
  readonly #amounts: (report: ProgressReport) => string;
  /** Shows how far the work is, at most every `#everyMs`. */
  readonly #show: (report: ProgressReport) => void;
  readonly #everyMs: number;
  readonly #bar: SingleBar | undefined;

  constructor(label: string, options: ProgressOptions, amounts: (report: ProgressReport) => string) {
    const { quiet, json, onReport, hint, log = logLine, now = () => performance.now() } = options;
    const isSilent = quiet || json || onReport !== undefined;
    this.#label = label;
    this.#amounts = amounts;
    this.#now = now;
    this.#startedMs = this.#shownMs = now();
    this.#hint = hint === undefined ? "" : ` (${hint})`;
    const hasBar = !isSilent && (options.isTerminal ?? process.stderr.isTTY);
    const format = "{label} {bar} {percentage}% {text}";
    if (hasBar) this.#bar = new SingleBar({ stream: process.stderr, format, clearOnComplete: true, hideCursor: true });
    this.#everyMs = hasBar ? 0 : onReport ? REPORT_MS : LINE_MS;
    this.#show =
      onReport ?? (isSilent ? () => {} : (report) => (hasBar ? this.#draw(report) : log(this.#line(report))));
  }

  addTotal(amount: number): void {
    this.#total += amount;
    if (this.#bar?.isActive) this.#bar.setTotal(this.#total);
    else this.#bar?.start(this.#total, this.#done, { label: this.#label, text: "" });
  }

  add(amount: number): void {
    this.set(this.#label, this.#done + amount);
  }

  set(label: string, done: number): void {
    this.#label = label;
    this.#done = done;
    const nowMs = this.#now();
    if (nowMs - this.#shownMs < this.#everyMs) return;
    this.#shownMs = nowMs;
    const perSecond = (done * 1000) / Math.max(1, nowMs - this.#startedMs);
    this.#show({
      bytesDone: done,
      bytesInAll: this.#total,
      bytesPerSecond: Math.round(perSecond),
      secondsLeft: perSecond > 0 ? Math.ceil(Math.max(0, this.#total - done) / perSecond) : 0,
    });
  }

  stop(): void {
    this.#bar?.stop();
  }

  #draw(report: ProgressReport): void {
    this.#bar?.update(this.#done, { label: this.#label, text: this.#text(report) });
  }

  #line(report: ProgressReport): string {
    const line = `${this.#label}: ${this.#text(report)}${this.#hint}`;
    this.#hint = "";
    return line;
  }

  #text(report: ProgressReport): string {
    return `${this.#amounts(report)}, about ${formatDuration(report.secondsLeft * 1000)} left`;
  }
}

/** A duration for people: `40 s`, `8 min 40 s`. Below ten minutes to the second, above to the minute. */
export function formatDuration(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return seconds < 600 && seconds % 60 > 0 ? `${minutes} min ${seconds % 60} s` : `${Math.round(seconds / 60)} min`;
}
