/** Bounded concurrency. */

/** Runs `task` for every item, `count` at a time, in order of starting. */
export async function inParallel<T>(
  count: number,
  items: readonly T[],
  task: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = items.values();
  const worker = async (): Promise<void> => {
    for (const item of iterator) await task(item);
  };
  await Promise.all(Array.from({ length: Math.min(count, items.length) }, worker));
}
