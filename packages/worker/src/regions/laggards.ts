/**
 * Regions that lacked a version which a majority of the regions has. They have probably missed other puts of that time,
 * too, so they are asked for manifests last until they have had time to be repaired.
 */
import type { Clock } from "@agarose/core";

/** How long a region is asked last after each time. */
export const LAGGING_MS = 60_000;

/** The laggards that one isolate knows. */
export class Laggards {
  readonly #clock: Pick<Clock, "now">;
  readonly #untilMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Notes that `region` lacked a version. */
  note(region: string): void {
    this.#untilMs.set(region, this.#clock.now() + LAGGING_MS);
  }

  /** Whether `region` lacked one lately. */
  has(region: string): boolean {
    return (this.#untilMs.get(region) ?? Number.NEGATIVE_INFINITY) > this.#clock.now();
  }
}
