/** A log of reads in the form that the simulator replays, built line by line from an access log. */

import { solverError } from "../errors.ts";
import { parseLogLine } from "./log-formats.ts";
import type { LogFormat } from "./log-formats.ts";

/**
 * Reads in the order of time. `seconds`, `object` and `pop` have one entry per read; `keys` and `bytes` one per object.
 */
export interface Trace {
  /** Object names; the numbers in `object` are indices into it. */
  readonly keys: readonly string[];
  /** Largest size seen of each object in bytes; the median of all known sizes where the log has none. */
  readonly bytes: Float64Array;
  /** Seconds since the first read, ascending. */
  readonly seconds: Float64Array;
  /** The object read, as an index into `keys`. */
  readonly object: Int32Array;
  /** Name of the PoP that served the read; undefined where the log does not say. */
  readonly pop: readonly (string | undefined)[];
  readonly report: TraceReport;
}

/** How many lines of a log were usable. */
export interface TraceReport {
  readonly lines: number;
  readonly reads: number;
  /** Well-formed lines that are not successful reads: writes, listings, errors. */
  readonly otherLines: number;
  readonly malformedLines: number;
  /** The first few malformed lines. */
  readonly malformed: readonly { readonly line: number; readonly problem: string }[];
}

/** How to read a log. */
export interface TraceOptions {
  readonly format: LogFormat;
  /** Throws at the first malformed line instead of counting it. Default false. */
  readonly isStrict?: boolean;
  /** Reads per second for formats without times (YCSB). Default 1. */
  readonly perSecond?: number;
}

const REPORTED_MAX = 10;
const BYTES_UNKNOWN = 1_000_000;

/** Builds a trace from the lines of a log: `add` each line, then `finish`. */
export class TraceBuilder {
  readonly #options: TraceOptions;
  readonly #indexOf = new Map<string, number>();
  readonly #bytes: number[] = [];
  readonly #reads: { seconds: number; object: number; pop: string | undefined }[] = [];
  readonly #malformed: { line: number; problem: string }[] = [];
  #columns: readonly string[] | undefined;
  #lines = 0;
  #otherLines = 0;
  #malformedLines = 0;

  constructor(options: TraceOptions) {
    this.#options = options;
  }

  /** Takes the next line. Throws SCENARIO_INVALID with its number when strict and the line is malformed. */
  add(line: string): void {
    this.#lines++;
    if (line.trim() === "") return;
    if (this.#options.format === "csv" && !this.#columns) {
      this.#columns = line.split(",").map((name) => name.trim().toLowerCase());
      return;
    }
    const parsed = parseLogLine(this.#options.format, line, this.#columns ?? []);
    if (parsed.kind === "other") this.#otherLines++;
    else if (parsed.kind === "malformed") this.#refuse(parsed.problem);
    else {
      const seconds = parsed.seconds ?? this.#reads.length / (this.#options.perSecond ?? 1);
      this.#reads.push({ seconds, object: this.#numberOf(parsed.key, parsed.bytes ?? 0), pop: parsed.pop });
    }
  }

  /** Returns the trace. Throws SCENARIO_INVALID when no line was a read. */
  finish(): Trace {
    if (this.#reads.length === 0) {
      const { format } = this.#options;
      throw solverError(
        "SCENARIO_INVALID",
        `none of the ${this.#lines} lines is a read in ${format} format: choose another format`,
        {
          lines: this.#lines,
          malformed: this.#malformed,
        },
      );
    }
    // Servers log requests when they end, and several machines write one log: lines are only nearly in order.
    const reads = this.#reads.toSorted((a, b) => a.seconds - b.seconds);
    const known = this.#bytes.filter((bytes) => bytes > 0).toSorted((a, b) => a - b);
    const usual = known[known.length >> 1] ?? BYTES_UNKNOWN;
    return {
      keys: [...this.#indexOf.keys()],
      bytes: Float64Array.from(this.#bytes, (bytes) => bytes || usual),
      seconds: Float64Array.from(reads, (read) => read.seconds - reads[0]!.seconds),
      object: Int32Array.from(reads, (read) => read.object),
      pop: reads.map((read) => read.pop),
      report: {
        lines: this.#lines,
        reads: reads.length,
        otherLines: this.#otherLines,
        malformedLines: this.#malformedLines,
        malformed: this.#malformed,
      },
    };
  }

  #numberOf(key: string, bytes: number): number {
    let object = this.#indexOf.get(key);
    if (object === undefined) {
      object = this.#bytes.length;
      this.#indexOf.set(key, object);
      this.#bytes.push(0);
    }
    this.#bytes[object] = Math.max(this.#bytes[object]!, bytes);
    return object;
  }

  #refuse(problem: string): void {
    if (this.#options.isStrict) {
      throw solverError("SCENARIO_INVALID", `line ${this.#lines}: ${problem}`, { line: this.#lines });
    }
    this.#malformedLines++;
    if (this.#malformed.length < REPORTED_MAX) this.#malformed.push({ line: this.#lines, problem });
  }
}
