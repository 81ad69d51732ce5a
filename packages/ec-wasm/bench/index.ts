/**
 * The codec side by side with others: `agarose lab bench codec`.
 *
 * All subjects of a piece of work are measured in turn, round after round, so that a slow moment of the machine falls
 * on all of them. A round's figure is the fastest of a few short bursts, the result the median over the rounds; ratios
 * are what to read.
 * @module
 */
import { crateInNode, oursInNode, subspaceInNode } from "./node-contestants.ts";
import { oursInChromium } from "./chromium-contestant.ts";
import { isal, klauspost } from "./native-contestant.ts";
import { Unavailable, type Contestant, type Op, type Subject, type Work } from "./subject.ts";
import { oursInWorkerd } from "./workerd-contestant.ts";

export type { Contestant, Op, Subject, Work } from "./subject.ts";
export { Unavailable } from "./subject.ts";

export interface CodecResult {
  readonly implementation: string;
  readonly runtime: string;
  readonly op: Op;
  readonly k: number;
  readonly m: number;
  /** Object bytes of the stripe. */
  readonly bytes: number;
  /** Data shards that were lost; 0 when encoding. */
  readonly lost: number;
  readonly medianUs: number;
  /** The fastest round. */
  readonly bestUs: number;
  /** Object data per second, in 10^6 bytes. */
  readonly mbPerSecond: number;
}

export interface CodecReport {
  readonly results: readonly CodecResult[];
  /** By work, then implementation (and runtime), then yardstick: how many times as fast as the yardstick. */
  readonly ratios: Readonly<Record<string, Record<string, Record<string, number>>>>;
  /** The contestants that cannot run on this machine, and why. */
  readonly skipped: readonly { readonly implementation: string; readonly reason: string }[];
}

export interface CodecBenchOptions {
  readonly works?: readonly Work[];
  readonly rounds?: number;
  readonly contestants?: readonly Contestant[];
  /** Receives each piece of work before it is measured, for a progress line. */
  readonly onWork?: (work: Work) => void;
}

const MIB = 1 << 20;
export const WORKS: readonly Work[] = [
  { op: "reconstruct", k: 9, m: 3, bytes: MIB, lost: 3 },
  { op: "reconstruct", k: 9, m: 3, bytes: MIB, lost: 1 },
  { op: "reconstruct", k: 10, m: 4, bytes: 4 * MIB, lost: 4 },
  { op: "reconstruct", k: 9, m: 3, bytes: 40 * MIB, lost: 3 },
  { op: "encode", k: 9, m: 3, bytes: MIB, lost: 0 },
];
const YARDSTICKS = ["reed-solomon-erasure wasm", "klauspost avx2"];
/** Long enough for the clock of a browser, shorter than a slice of the scheduler. */
const BURST_US = 1_500;
/** A round counts the fastest of so many bursts: on a machine with other work, the others were mostly waiting. */
const BURSTS_PER_ROUND = 3;
const ITERATIONS_MAX = 1000;
/** Less than any subject takes: what is below is an error of a clock. */
const RESOLUTION_US = 0.01;

/** Everyone. What is missing on this machine costs nothing and is listed in the report. */
function allContestants(): Contestant[] {
  return [oursInNode(), crateInNode(), subspaceInNode(), klauspost(), isal(), oursInChromium(), oursInWorkerd()];
}

/** Measures every contestant on every piece of work. Contestants that are not available here are listed, not failed. */
export async function benchCodec(options: CodecBenchOptions = {}): Promise<CodecReport> {
  const { works = WORKS, rounds = 15, contestants = allContestants(), onWork = () => {} } = options;
  const results: CodecResult[] = [];
  const skipped = new Map<string, string>();
  try {
    for (const work of works) {
      onWork(work);
      const subjects = await prepareAll(contestants, work, skipped);
      const times = await alternatingTimes(subjects, rounds);
      results.push(...subjects.map((subject, i) => toResult(subject, work, times[i]!)));
    }
  } finally {
    await Promise.all(contestants.map((contestant) => contestant.close()));
  }
  return {
    results,
    ratios: ratiosOf(results),
    skipped: [...skipped].map(([implementation, reason]) => ({ implementation, reason })),
  };
}

async function prepareAll(
  contestants: readonly Contestant[],
  work: Work,
  skipped: Map<string, string>,
): Promise<Subject[]> {
  const subjects: Subject[] = [];
  for (const contestant of contestants) {
    if (skipped.has(contestant.name)) continue;
    try {
      subjects.push(...(await contestant.prepare(work)));
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      skipped.set(contestant.name, error.message);
    }
  }
  return subjects;
}

/** Microseconds of each subject in each of `rounds` rounds in which all take their turn. */
export async function alternatingTimes(subjects: readonly Subject[], rounds: number): Promise<number[][]> {
  const iterations: number[] = [];
  for (const subject of subjects) {
    // The first calls compile; the fastest of the next ones determines how many fit in a burst.
    await subject.measure(3);
    const fastest = await fastestOf(subject, 3);
    iterations.push(Math.min(ITERATIONS_MAX, Math.max(1, Math.round(BURST_US / fastest))));
  }
  const times: number[][] = subjects.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, subject] of subjects.entries()) {
      times[i]!.push(await fastestOf(subject, iterations[i]!));
    }
  }
  return times;
}

async function fastestOf(subject: Subject, iterations: number): Promise<number> {
  let fastest = Infinity;
  for (let burst = 0; burst < BURSTS_PER_ROUND; burst++) fastest = Math.min(fastest, await subject.measure(iterations));
  return Math.max(fastest, RESOLUTION_US);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

function toResult(subject: Subject, work: Work, times: readonly number[]): CodecResult {
  const medianUs = median(times);
  return {
    implementation: subject.implementation,
    runtime: subject.runtime,
    ...work,
    medianUs: rounded(medianUs, 2),
    bestUs: rounded(Math.min(...times), 2),
    mbPerSecond: rounded(work.bytes / medianUs, 1),
  };
}

function ratiosOf(results: readonly CodecResult[]): Record<string, Record<string, Record<string, number>>> {
  const byWork: Record<string, Record<string, Record<string, number>>> = {};
  for (const result of results) {
    const work = `${result.op} (${result.k},${result.m}) ${result.bytes} B, ${result.lost} lost`;
    for (const yardstick of results.filter((other) => isYardstick(other) && sameWork(other, result))) {
      const name = `${result.implementation} (${result.runtime})`;
      ((byWork[work] ??= {})[name] ??= {})[yardstick.implementation] = rounded(yardstick.medianUs / result.medianUs, 3);
    }
  }
  return byWork;
}

function isYardstick(result: CodecResult): boolean {
  return YARDSTICKS.includes(result.implementation);
}

function sameWork(a: Work, b: Work): boolean {
  return a.op === b.op && a.k === b.k && a.m === b.m && a.bytes === b.bytes && a.lost === b.lost;
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
