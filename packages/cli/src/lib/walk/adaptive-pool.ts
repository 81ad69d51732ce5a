/**
 * Work on many items, as wide as the stores take it: one more at a time after a round without complaint, half as many
 * when a store asks for less (additive increase, multiplicative decrease: Chiu and Jain 1989).
 */

/** Bounds of a width, in units. */
export interface WidthOptions {
  readonly start: number;
  readonly min: number;
  readonly max: number;
}

/** How many units may be under way at a time. */
export class AdaptiveWidth {
  readonly #options: WidthOptions;
  #units: number;
  #successes = 0;
  /** Ends of work that began before the last decrease say nothing of the width after it. */
  #stale = 0;
  #underWay = 0;

  constructor(options: WidthOptions) {
    this.#options = options;
    this.#units = options.start;
  }

  /** Units that may be under way now. */
  get units(): number {
    return this.#units;
  }

  begin(): void {
    this.#underWay++;
  }

  /** Notes that a piece of work has ended. */
  end(): void {
    this.#underWay--;
    if (this.#stale > 0) {
      this.#stale--;
      return;
    }
    this.#successes++;
    if (this.#successes < this.#units) return;
    this.#successes = 0;
    this.#units = Math.min(this.#options.max, this.#units + Math.max(1, Math.floor(this.#units / 4)));
  }

  /** Notes that a store asked for fewer requests. Of one round only the first counts. */
  throttle(): void {
    this.#successes = 0;
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
  for (const [index, item] of items.entries()) {
    const units = unitsOf(item);
    while (failures.length === 0 && running.size > 0 && used + units > width.units) await Promise.race(running);
    if (failures.length > 0) break;
    used += units;
    width.begin();
    const work = action(item)
      .then(
        (result) => void (results[index] = result),
        (error: unknown) => void failures.push(error),
      )
      .finally(() => {
        used -= units;
        width.end();
        running.delete(work);
      });
    running.add(work);
  }
  await Promise.all(running);
  if (failures.length > 0) throw failures[0];
  return results;
}
