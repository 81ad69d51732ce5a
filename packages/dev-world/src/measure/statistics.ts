/** Medians and quartiles: the machine that measures does other things too, and means would show those. */

/** Of some values. */
export interface Summary {
  readonly count: number;
  readonly q1: number;
  readonly median: number;
  readonly q3: number;
}

/** Throws when `values` is empty. */
export function summarize(values: readonly number[]): Summary {
  const sorted = values.toSorted((a, b) => a - b);
  return {
    count: sorted.length,
    q1: quantile(sorted, 0.25),
    median: quantile(sorted, 0.5),
    q3: quantile(sorted, 0.75),
  };
}

/** Resamples of a bootstrap: the ends of an interval then move by a hundredth of it. */
const RESAMPLES = 2_000;

/**
 * The ends of the 95% interval of median(`a`) / median(`b`), by the percentile bootstrap (Efron, 1979).
 *
 * @param random numbers from 0 to below 1.
 */
export function medianRatio(a: readonly number[], b: readonly number[], random: () => number): [number, number] {
  const median = (values: readonly number[]): number =>
    summarize(values.map(() => values[Math.floor(random() * values.length)]!)).median;
  const sorted = Array.from({ length: RESAMPLES }, () => median(a) / median(b)).toSorted((x, y) => x - y);
  return [quantile(sorted, 0.025), quantile(sorted, 0.975)];
}

/** `median (q1 - q3)`. */
export function spread({ q1, median, q3 }: Summary, digits = 1): string {
  return `${median.toFixed(digits)} (${q1.toFixed(digits)} - ${q3.toFixed(digits)})`;
}

/** A Markdown table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const alignment = head.map((_, i) => (i === 0 ? "---" : "---:"));
  return [head, alignment, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** Linear between the two nearest ranks. */
function quantile(sorted: readonly number[], q: number): number {
  if (sorted.length === 0) throw new Error("no values to summarize");
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)]!;
  return low + (sorted[Math.ceil(at)]! - low) * (at - Math.floor(at));
}
