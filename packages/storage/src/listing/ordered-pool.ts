/** Work on a stream of items, several at a time, with the results in order and in constant memory. */

/**
 * Yields the result of `action` for each of `items`, in their order, with at most `limit` of them begun and not yet
 * yielded. The first failure rejects; actions that have started still run to their end.
 */
export async function* mapOrdered<T, R>(
  items: AsyncIterable<T> | Iterable<T>,
  limit: number,
  action: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const running: Promise<R>[] = [];
  try {
    for await (const item of items) {
      const result = action(item);
      // A failure counts when its turn comes.
      result.catch(() => {});
      running.push(result);
      if (running.length >= limit) yield await running.shift()!;
    }
    while (running.length > 0) yield await running.shift()!;
  } finally {
    await Promise.allSettled(running);
  }
}
