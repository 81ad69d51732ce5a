/** Latencies of repeated reads, and what a test's failure says of them. Pure: the caller passes reads and clock in. */
import type { Clock } from "@agarose/core";
import { quantile } from "@agarose/solver/simulator";

/** A figure of several reads. */
export type Statistic = "p50" | "p99" | "mean";

/** One timed read. */
export interface Sample {
  /** From the call of `fetch` to the last byte. Infinite for a read that failed: it is slower than any other. */
  readonly ms: number;
  /** When it began, in milliseconds since 1970. */
  readonly at: number;
  /** Why it failed. */
  readonly error?: string;
}

/** Reads once. */
export type TimedRead = (timeoutMs: number) => Promise<Sample>;

/** How long to collect. */
export interface CollectOptions {
  /** Reads of each contestant. */
  readonly reads: number;
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, "now">;
}

/**
 * Lets the contestants read in turn until each has its reads, or the time is over. A read that the time cuts off does
 * not count.
 *
 * @returns the reads of each contestant.
 */
export async function collect(
  contestants: readonly TimedRead[],
  { reads, timeoutMs, clock }: CollectOptions,
): Promise<Sample[][]> {
  const deadlineMs = clock.now() + timeoutMs;
  const samples = contestants.map((): Sample[] => []);
  for (let round = 0; round < reads; round++) {
    for (const [i, read] of contestants.entries()) {
      const leftMs = deadlineMs - clock.now();
      const sample = leftMs > 0 ? await read(leftMs) : undefined;
      if (!sample || clock.now() > deadlineMs) return samples;
      samples[i]!.push(sample);
    }
  }
  return samples;
}

/** Returns the figure in milliseconds. Infinite when reads that failed are part of it. */
export function figureOf(samples: readonly Sample[], statistic: Statistic): number {
  const times = samples.map(({ ms }) => ms).toSorted((a, b) => a - b);
  if (statistic === "mean") return times.reduce((sum, ms) => sum + ms, 0) / times.length;
  return quantile(times, statistic === "p50" ? 0.5 : 0.99);
}

/** Describes the reads of one contestant in one line, such as `p99 of 30 reads: 212 ms`. */
export function describeReads(samples: readonly Sample[], statistic: Statistic): string {
  const failed = samples.filter(({ error }) => error !== undefined);
  const figure = figureOf(samples, statistic);
  const ms = Number.isFinite(figure) ? `${figure.toFixed(1)} ms` : "none, because failed reads are part of it";
  const failures = failed.length > 0 ? `; ${failed.length} failed: ${failed.at(-1)!.error}` : "";
  return `${statistic} of ${samples.length} reads: ${ms}${failures}`;
}

/** Returns the slowest read that has an end. */
export function slowestOf(samples: readonly Sample[]): Sample | undefined {
  return samples.filter(({ ms }) => Number.isFinite(ms)).toSorted((a, b) => b.ms - a.ms)[0];
}
