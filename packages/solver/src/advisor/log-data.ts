/** The data of an advice request, from an access log. Pure. */
import { SolverError } from "../errors.ts";
import type { Trace } from "../traces/trace.ts";
import type { AdviceRequest } from "./advise.ts";

const MONTH_SECONDS = (365.25 / 12) * 86_400;
const EXPONENT_MAX = 2;
const EXPONENT_STEP = 0.05;

/**
 * Objects, their mean size, reads per month and the Zipf exponent that makes the log's counts of reads likeliest.
 * Throws SCENARIO_INVALID for a log in which no time passes: it has no reads per month.
 */
export function dataOfLog({ keys, bytes, seconds, object, share, report }: Trace): AdviceRequest["data"] {
  const spanSeconds = (seconds.at(-1) ?? 0) - (seconds[0] ?? 0);
  if (spanSeconds <= 0) {
    throw new SolverError(
      "SCENARIO_INVALID",
      `the log has ${seconds.length} reads within ${spanSeconds} s, which give no reads per month: take a longer log`,
      { reads: seconds.length },
    );
  }
  return {
    objects: Math.round(keys.length / share),
    bytesPerObject: Math.max(1, Math.round(bytes.reduce((sum, size) => sum + size, 0) / keys.length)),
    readsPerMonth: Math.round((report.reads / spanSeconds) * MONTH_SECONDS),
    zipf: likeliestExponent(countsByRank(object, keys.length)),
  };
}

function countsByRank(object: Int32Array, objects: number): number[] {
  const counts = Array.from({ length: objects }, () => 0);
  for (const index of object) counts[index]!++;
  return counts.toSorted((a, b) => b - a);
}

/** Maximum likelihood over the exponents from 0 to 2. Ranks are those of the log itself. */
function likeliestExponent(counts: readonly number[]): number {
  const reads = counts.reduce((sum, count) => sum + count, 0);
  const logs = counts.map((_, rank) => Math.log(rank + 1));
  const countedLogs = counts.reduce((sum, count, rank) => sum + count * logs[rank]!, 0);
  let best = { exponent: 0, likelihood: Number.NEGATIVE_INFINITY };
  for (let step = 0; step * EXPONENT_STEP <= EXPONENT_MAX; step++) {
    const exponent = step * EXPONENT_STEP;
    const norm = Math.log(logs.reduce((sum, log) => sum + Math.exp(-exponent * log), 0));
    const likelihood = -exponent * countedLogs - reads * norm;
    if (likelihood > best.likelihood) best = { exponent, likelihood };
  }
  return Number(best.exponent.toFixed(2));
}
