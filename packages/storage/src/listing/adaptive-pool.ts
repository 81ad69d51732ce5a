/**
 * Work on many items, as wide as the stores take it: twice as many after a round without complaint (slow start:
 * Jacobson 1988), half as many when a store asks for less, and then a few more after each round (additive increase,
 * multiplicative decrease: Chiu and Jain 1989).
 */

/** Bounds of a width, in units. */
interface WidthOptions {
  readonly start: number;
  readonly min: number;
  readonly max: number;
}

/** How many units may be under way at a time. */
export class AdaptiveWidth {
  readonly #options: WidthOptions;
  #units: number;
  /** Units of work that ended since the last change. A round are as many as may be under way. */
  #done = 0;
  /** Work that began before the last decrease says nothing of the width after it. */
  #stale = 0;
  #underWay = 0;
  #isSlowStart = true;

  constructor(options: WidthOptions) {
    this.#options = options;
    this.#units = options.start;
  }

  /** Units that may be under way now. */
  get units(): number {
    return this.#units;
  }

  begin(units = 1): void {
    this.#underWay += units;
  }

  end(units = 1): void {
    this.#underWay -= units;
    if (this.#stale > 0) {
      this.#stale = Math.max(0, this.#stale - units);
      return;
    }
    this.#done += units;
    if (this.#done < this.#units) return;
    this.#done = 0;
    const growth = this.#isSlowStart ? this.#units : Math.max(1, Math.floor(this.#units / 4));
    this.#units = Math.min(this.#options.max, this.#units + growth);
  }

  /** Notes that a store asked for fewer requests. Of one round only the first counts. */
  throttle(): void {
    this.#isSlowStart = false;
    this.#done = 0;
    if (this.#stale > 0) return;
    this.#units = Math.max(this.#options.min, Math.floor(this.#units / 2));
    this.#stale = this.#underWay;
  }
}

/**
 * Runs `action` on all `items`, as many at a time as `width` allows, and returns the results in order. An item that
 * takes more units than there are runs alone. The first failure rejects; actions that have started still run to their
 * end.
 */
export async function mapAdaptive<T, R>(
  items: readonly T[],
  width: AdaptiveWidth,
  unitsOf: (item: T) => number,
  action: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const running = new Set<Promise<void>>();
  let used = 0;
  const failures: unknown[] = [];
  let ended = Promise.withResolvers<void>();
  for (const [index, item] of items.entries()) {
    const units = unitsOf(item);
    while (failures.length === 0 && running.size > 0 && used + units > width.units) {
      ended = Promise.withResolvers();
      await ended.promise;
    }
    if (failures.length > 0) break;
    used += units;
    width.begin(units);
    const work = action(item)
      .then(
        (result) => void (results[index] = result),
        (error: unknown) => void failures.push(error),
      )
      .finally(() => {
        used -= units;
        width.end(units);
        running.delete(work);
        ended.resolve();
      });
    running.add(work);
  }
  await Promise.all(running);
  if (failures.length > 0) throw failures[0];
  return results;
}

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

/** All items, in their order. */
export async function allOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
