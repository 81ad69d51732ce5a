/** Sums of what a walk has found. */

type Numbers<T> = { readonly [K in keyof T as T[K] extends number | undefined ? K : never]?: number };

/** Adds the numbers of `more` to those of `totals`. Numbers that `more` omits stay. */
export function addNumbers<T extends object>(totals: T, more: Numbers<T>): T {
  const before = totals as Readonly<Record<string, number>>;
  const sums = Object.entries(more as typeof before).map(([name, number]) => [name, (before[name] ?? 0) + number]);
  return { ...totals, ...Object.fromEntries(sums) };
}
