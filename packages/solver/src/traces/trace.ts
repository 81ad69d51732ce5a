/**
 * A log of reads in the form that the simulator replays, built line by line from access logs.
 *
 * Memory is bounded. Of a log with more reads than fit, a sample of the objects is kept, each with all of its reads:
 * such a sample behaves like the whole log with caches smaller by the same share (SHARDS, Waldspurger et al., FAST
 * 2015, section 3). The share halves whenever the reads outgrow their limit, so that one pass suffices.
 */
import { SolverError } from "../errors.ts";
import { grown } from "../grown.ts";
import { lineParser, parseCsvRecord } from "./log-formats.ts";
import type { LineParser, LogFormat, LogLine, LogRecord } from "./log-formats.ts";

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
  /** The PoP that served the read, as an index into `pops`; -1 where the log does not say. */
  readonly pop: Int16Array;
  readonly pops: readonly string[];
  /** The share of the log's objects that is here, above 0 and at most 1: caches must shrink by the same share. */
  readonly share: number;
  readonly report: TraceReport;
}

/** How many lines of the logs were usable. */
export interface TraceReport {
  readonly lines: number;
  /** Successful reads in the logs. */
  readonly reads: number;
  /** Of them, those of the objects that were kept. With no luck in the choice it is `share` of `reads`. */
  readonly readsKept: number;
  /** Well-formed lines that are not successful reads: writes, listings, errors. */
  readonly otherLines: number;
  readonly malformedLines: number;
  /** The first few malformed lines. */
  readonly malformed: readonly { readonly file: string; readonly line: number; readonly problem: string }[];
}

/** How to read logs. */
export interface TraceOptions {
  /** Throws at the first malformed line instead of counting it. Default false. */
  readonly isStrict?: boolean;
  /** Reads per second for formats without times (YCSB). Default 1. */
  readonly perSecond?: number;
  /** Above so many reads only a sample of the objects is kept. Default `READS_MAX`. */
  readonly readsMax?: number;
}

/** So many reads are kept by default. Sampled by objects, they give hit ratios to about half a point. */
export const READS_MAX = 1_000_000;
/** Fewer objects are no fair choice: the log is kept whole, which costs 14 bytes a read. */
const OBJECTS_MIN = 1_000;
const REPORTED_MAX = 10;
const BYTES_UNKNOWN = 1_000_000;

/** Builds a trace: `begin` each log, `add` each of its lines, then `finish`. */
export class TraceBuilder {
  readonly #isStrict: boolean;
  readonly #perSecond: number;
  readonly #readsMax: number;
  readonly #pops = new Map<string, number>();
  readonly #malformed: { file: string; line: number; problem: string }[] = [];
  #indexOf = new Map<string, number>();
  #bytes: number[] = [];
  #seconds = new Float64Array(1024);
  #object = new Int32Array(1024);
  #pop = new Int16Array(1024);
  #kept = 0;
  #share = 1;
  #reads = 0;
  #lines = 0;
  #otherLines = 0;
  #malformedLines = 0;
  #file = "";
  #line = 0;
  #parse: LineParser | undefined;

  constructor({ isStrict = false, perSecond = 1, readsMax = READS_MAX }: TraceOptions = {}) {
    this.#isStrict = isStrict;
    this.#perSecond = perSecond;
    this.#readsMax = readsMax;
  }

  /** Begins the log of a file, whose lines are of one format. */
  begin(file: string, format: LogFormat): void {
    this.#file = file;
    this.#line = 0;
    this.#parse = format === "csv" ? undefined : lineParser(format);
  }

  /**
   * Takes the next line, or the next record of a CSV file, which ends at line `at` of it. Throws SCENARIO_INVALID with
   * its number when strict and it is malformed.
   */
  add(line: string | LogRecord, at = this.#line + 1): void {
    this.#lines += at - this.#line;
    this.#line = at;
    if (typeof line !== "string") this.#take(parseCsvRecord(line));
    else if (line.trim() !== "") this.#take(this.#parse!(line));
  }

  /** Returns the trace. Throws SCENARIO_INVALID when no line was a read. */
  finish(): Trace {
    if (this.#kept === 0) {
      throw new SolverError(
        "SCENARIO_INVALID",
        `none of the ${this.#lines} lines is a read: choose another format with --format`,
        { lines: this.#lines, malformed: this.#malformed },
      );
    }
    const order = this.#inOrderOfTime();
    const known = this.#bytes.filter((bytes) => bytes > 0).toSorted((a, b) => a - b);
    const usual = known[known.length >> 1] ?? BYTES_UNKNOWN;
    const at = (index: number): number => order?.[index] ?? index;
    const from = this.#seconds[at(0)]!;
    const pick = <T extends Float64Array | Int32Array | Int16Array>(values: T): T => {
      const picked = values.slice(0, this.#kept) as T;
      if (order) for (const [to, index] of order.entries()) picked[to] = values[index]!;
      return picked;
    };
    return {
      keys: [...this.#indexOf.keys()],
      bytes: Float64Array.from(this.#bytes, (bytes) => bytes || usual),
      seconds: pick(this.#seconds).map((seconds) => seconds - from),
      object: pick(this.#object),
      pop: pick(this.#pop),
      pops: [...this.#pops.keys()],
      share: this.#share,
      report: {
        lines: this.#lines,
        reads: this.#reads,
        readsKept: this.#kept,
        otherLines: this.#otherLines,
        malformedLines: this.#malformedLines,
        malformed: this.#malformed,
      },
    };
  }

  #take(parsed: LogLine): void {
    if (parsed.kind === "other") this.#otherLines++;
    else if (parsed.kind === "malformed") this.#refuse(parsed.problem);
    else {
      const seconds = parsed.seconds ?? this.#reads / this.#perSecond;
      this.#reads++;
      if (this.#share === 1 || placeOf(parsed.key) < this.#share) this.#keep(parsed, seconds);
    }
  }

  #keep({ key, bytes = 0, pop }: Extract<LogLine, { kind: "read" }>, seconds: number): void {
    if (this.#kept === this.#object.length) this.#grow();
    this.#seconds[this.#kept] = seconds;
    this.#object[this.#kept] = this.#numberOf(key, bytes);
    this.#pop[this.#kept] = pop === undefined ? -1 : this.#numberOfPop(pop);
    this.#kept++;
    if (this.#kept > this.#readsMax && this.#indexOf.size >= 2 * OBJECTS_MIN) this.#halve();
  }

  #grow(): void {
    const size = 2 * this.#object.length;
    this.#seconds = grown(this.#seconds, size);
    this.#object = grown(this.#object, size);
    this.#pop = grown(this.#pop, size);
  }

  /** Drops half of the objects, with all of their reads. */
  #halve(): void {
    this.#share /= 2;
    const kept = new Map<string, number>();
    const numbers = new Int32Array(this.#bytes.length).fill(-1);
    const bytes: number[] = [];
    for (const [key, index] of this.#indexOf) {
      if (placeOf(key) >= this.#share) continue;
      numbers[index] = bytes.length;
      kept.set(key, bytes.length);
      bytes.push(this.#bytes[index]!);
    }
    let count = 0;
    for (let read = 0; read < this.#kept; read++) {
      const object = numbers[this.#object[read]!]!;
      if (object < 0) continue;
      this.#seconds[count] = this.#seconds[read]!;
      this.#object[count] = object;
      this.#pop[count++] = this.#pop[read]!;
    }
    this.#kept = count;
    this.#indexOf = kept;
    this.#bytes = bytes;
  }

  /** Indices of the reads by time; undefined when they are in that order already. */
  #inOrderOfTime(): Uint32Array | undefined {
    const seconds = this.#seconds.subarray(0, this.#kept);
    // Servers log requests when they end, and several machines write one log: lines are only nearly in order.
    if (seconds.every((value, i) => i === 0 || value >= seconds[i - 1]!)) return undefined;
    return Uint32Array.from(seconds.keys()).toSorted((a, b) => seconds[a]! - seconds[b]! || a - b);
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

  #numberOfPop(pop: string): number {
    const known = this.#pops.get(pop);
    if (known !== undefined) return known;
    // The most PoPs of a log; further names count as none.
    if (this.#pops.size >= 32_767) return -1;
    this.#pops.set(pop, this.#pops.size);
    return this.#pops.size - 1;
  }

  #refuse(problem: string): void {
    const [file, line] = [this.#file, this.#line];
    if (this.#isStrict) throw new SolverError("SCENARIO_INVALID", `${file}: line ${line}: ${problem}`, { file, line });
    this.#malformedLines++;
    if (this.#malformed.length < REPORTED_MAX) this.#malformed.push({ file, line, problem });
  }
}

/**
 * Keeps about `readsMax` reads: all reads of the objects whose key hashes below a threshold (SHARDS, Waldspurger et
 * al., FAST 2015). Returns a shorter log as it is, and also one that has too few objects to choose from.
 */
export function sampleTrace(trace: Trace, readsMax: number): Trace {
  const wanted = Math.min(1, readsMax / trace.object.length);
  if (wanted === 1) return trace;
  const numbers = new Int32Array(trace.keys.length).fill(-1);
  const kept: number[] = [];
  for (const [object, key] of trace.keys.entries()) {
    if (placeOf(key) >= wanted * trace.share) continue;
    numbers[object] = kept.length;
    kept.push(object);
  }
  const reads = Uint32Array.from(trace.object.keys()).filter((at) => numbers[trace.object[at]!]! >= 0);
  // Too few objects to choose from: the whole log is slow, but a sample would be wrong.
  if (reads.length < readsMax / 4) return trace;
  return {
    ...trace,
    keys: kept.map((object) => trace.keys[object]!),
    bytes: Float64Array.from(kept, (object) => trace.bytes[object]!),
    seconds: Float64Array.from(reads, (at) => trace.seconds[at]!),
    object: Int32Array.from(reads, (at) => numbers[trace.object[at]!]!),
    pop: Int16Array.from(reads, (at) => trace.pop[at]!),
    share: (trace.share * kept.length) / numbers.length,
  };
}

/** A place in [0, 1) that depends on the key alone: FNV-1a, finished as MurmurHash3 is. */
function placeOf(key: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) h = Math.imul(h ^ key.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return ((h ^ (h >>> 16)) >>> 0) / 2 ** 32;
}
