/**
 * How long a source that failed is asked last: five seconds, then twice as long after each further failure, up to a
 * minute. One rule for a read, the service worker and the PoPs. It only orders requests. A writer that skips a region
 * altogether has its own rule in `@agarose/storage`, and probes of the Cron Trigger count periods instead of time.
 */
import type { Clock } from "../ports.ts";

/** How long the first failure counts: most interruptions of a bucket or a network are over then. */
export const AVOID_MS = 5_000;
/** How long a failure counts at most. Nobody waits longer for a source that is well again. */
export const AVOID_MS_MAX = 60_000;

/** The failures of sources that one reader has seen, by the ids of the sources. */
export class SourceHealth {
  protected readonly clock: Pick<Clock, "now">;
  /** How long each is avoided, and until when. */
  readonly #avoided = new Map<string, readonly [ms: number, untilMs: number]>();

  constructor(clock: Pick<Clock, "now">) {
    this.clock = clock;
  }

  /** Records a failure. Those of a time in which the source is avoided do not lengthen it. */
  failed(id: string): void {
    if (!this.isAvoided(id)) this.avoid(id, 2 * (this.#avoided.get(id)?.[0] ?? AVOID_MS / 2));
  }

  /** Has the source asked last for `ms` from now on, or a minute if that is less. */
  avoid(id: string, ms: number): void {
    ms = Math.min(AVOID_MS_MAX, ms);
    this.#avoided.set(id, [ms, this.clock.now() + ms]);
  }

  /** Records that the source has delivered, which ends its time and forgets its failures. */
  succeeded(id: string): void {
    this.#avoided.delete(id);
  }

  clear(): void {
    this.#avoided.clear();
  }

  /** Whether the source is to be asked last now. */
  isAvoided(id: string): boolean {
    return this.clock.now() < (this.#avoided.get(id)?.[1] ?? 0);
  }
}
