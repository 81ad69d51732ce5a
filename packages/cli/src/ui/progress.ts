/**
 * Progress in bytes over all files of a command: a bar on a terminal, a line now and then elsewhere, or reports for a
 * program.
 */
import { SingleBar } from "cli-progress";
import { formatBytes, logLine } from "./output.ts";
import { formatDuration } from "./step-progress.ts";

/** What a command says of its bytes. */
export interface Progress {
  addTotal(bytes: number): void;
  add(bytes: number): void;
  stop(): void;
}

/** How far a command is. */
export interface ProgressReport {
  readonly bytesDone: number;
  /** What is known to be done in all. It grows while files are still found. */
  readonly bytesInAll: number;
  /** Since the first byte. */
  readonly bytesPerSecond: number;
  readonly secondsLeft: number;
}

/** Where progress goes. */
export interface ProgressOptions {
  /** Stay silent on stderr. */
  readonly quiet: boolean;
  /** Gets a report every five seconds in which bytes moved. */
  readonly onReport?: ((report: ProgressReport) => void) | undefined;
  /** Default: whether stderr is one. */
  readonly isTerminal?: boolean;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
  /** Default: stderr. */
  readonly log?: (line: string) => void;
}

const SILENT: Progress = { addTotal: () => {}, add: () => {}, stop: () => {} };
const REPORT_MS = 5_000;
/** A log of CI with a line every 15 s stays readable. */
const LINE_MS = 15_000;

/** Returns what draws, prints or reports the progress of `label`. */
export function startProgress(label: string, options: ProgressOptions): Progress {
  const { quiet, onReport, isTerminal = process.stderr.isTTY, now = () => performance.now(), log = logLine } = options;
  if (onReport) return new TimedProgress({ now, everyMs: REPORT_MS, onReport });
  if (quiet) return SILENT;
  if (isTerminal) return new Bar(label, now);
  const print = (report: ProgressReport): void => log(`${label}: ${lineOf(report)}`);
  return new TimedProgress({ now, everyMs: LINE_MS, onReport: print });
}

function lineOf({ bytesDone, bytesInAll, bytesPerSecond, secondsLeft }: ProgressReport): string {
  const amounts = `${formatBytes(bytesDone)} of ${formatBytes(bytesInAll)}`;
  return `${amounts}, ${formatBytes(bytesPerSecond)}/s, about ${formatDuration(secondsLeft * 1000)} left`;
}

/** Counts bytes and time. */
class Transfer {
  readonly #now: () => number;
  readonly #startedMs: number;
  #done = 0;
  #total = 0;

  constructor(now: () => number) {
    this.#now = now;
    this.#startedMs = now();
  }

  add(bytes: number): void {
    this.#done += bytes;
  }

  addTotal(bytes: number): void {
    this.#total += bytes;
  }

  report(): ProgressReport {
    const bytesPerSecond = (this.#done * 1000) / Math.max(1, this.#now() - this.#startedMs);
    const left = Math.max(0, this.#total - this.#done);
    return {
      bytesDone: this.#done,
      bytesInAll: this.#total,
      bytesPerSecond: Math.round(bytesPerSecond),
      secondsLeft: bytesPerSecond > 0 ? Math.ceil(left / bytesPerSecond) : 0,
    };
  }
}

interface TimedOptions {
  readonly now: () => number;
  readonly everyMs: number;
  readonly onReport: (report: ProgressReport) => void;
}

/** Reports at most every `everyMs`, when bytes move. Short work reports nothing. */
class TimedProgress implements Progress {
  readonly #transfer: Transfer;
  readonly #options: TimedOptions;
  #reportedMs: number;

  constructor(options: TimedOptions) {
    this.#options = options;
    this.#transfer = new Transfer(options.now);
    this.#reportedMs = options.now();
  }

  addTotal(bytes: number): void {
    this.#transfer.addTotal(bytes);
  }

  add(bytes: number): void {
    this.#transfer.add(bytes);
    const { now, everyMs, onReport } = this.#options;
    if (now() - this.#reportedMs < everyMs) return;
    this.#reportedMs = now();
    onReport(this.#transfer.report());
  }

  stop(): void {}
}

/** A bar on a terminal. */
class Bar implements Progress {
  readonly #bar: SingleBar;
  readonly #transfer: Transfer;

  constructor(label: string, now: () => number) {
    this.#transfer = new Transfer(now);
    this.#bar = new SingleBar({
      stream: process.stderr,
      format: `${label} {bar} {percentage}% {done} of {all} · {speed}/s · {eta_formatted} left`,
      clearOnComplete: true,
      hideCursor: true,
      etaBuffer: 200,
    });
  }

  addTotal(bytes: number): void {
    this.#transfer.addTotal(bytes);
    const { bytesInAll } = this.#transfer.report();
    if (this.#bar.isActive) this.#bar.setTotal(bytesInAll);
    else this.#bar.start(bytesInAll, 0, this.#payload());
  }

  add(bytes: number): void {
    this.#transfer.add(bytes);
    this.#bar.update(this.#transfer.report().bytesDone, this.#payload());
  }

  stop(): void {
    this.#bar.stop();
  }

  #payload(): Record<string, string> {
    const { bytesDone, bytesInAll, bytesPerSecond } = this.#transfer.report();
    return { done: formatBytes(bytesDone), all: formatBytes(bytesInAll), speed: formatBytes(bytesPerSecond) };
  }
}
