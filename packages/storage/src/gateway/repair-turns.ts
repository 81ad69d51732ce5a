/**
 * The keys whose puts and removals a server could not finish, each of which has its turn to be repaired: one at a time,
 * so that no key is repaired twice at once, and with pauses, so that its clients come first.
 */
import type { Clock } from "@agarose/core";
import { sleep } from "../commit/write-context.ts";

/** A region that was late for a moment answers again by then. */
const FIRST_MS = 20_000;
/** At most four objects a second. */
const PAUSE_MS = 250;
/** While what is tried fails, each wait is twice as long as the one before, up to this. */
const RETRY_MS_MAX = 600_000;
/** Others are left to `agarose repair`. */
const KEYS_MAX = 10_000;

/** Repairs a key, and returns whether it lacks nothing any more. Rejects only when aborted. */
export type RepairKey = (key: string, signal: AbortSignal) => Promise<boolean>;

/** The turns of one server. */
export class RepairTurns {
  readonly #clock: Clock;
  readonly #repair: RepairKey;
  /** In the order of their turns. */
  readonly #waiting = new Set<string>();
  readonly #ending = new AbortController();
  #running: Promise<void> | undefined;

  constructor(clock: Clock, repair: RepairKey) {
    this.#clock = clock;
    this.#repair = repair;
  }

  /** A key that is being repaired has another turn. */
  add(key: string): void {
    if (this.#ending.signal.aborted || this.#waiting.size >= KEYS_MAX) return;
    this.#waiting.add(key);
    this.#running ??= this.#run();
  }

  /** Stops the repair under way. Resolves when it has ended. */
  async close(): Promise<void> {
    this.#ending.abort();
    await this.#running?.catch(() => {});
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending;
    let waitMs = FIRST_MS;
    try {
      for (const key of this.#waiting) {
        await sleep(waitMs, { clock: this.#clock, signal });
        this.#waiting.delete(key);
        const isWhole = await this.#repair(key, signal);
        // The loop comes to it again, behind the others.
        if (!isWhole) this.#waiting.add(key);
        waitMs = isWhole ? PAUSE_MS : Math.min(Math.max(2 * waitMs, FIRST_MS), RETRY_MS_MAX);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#running = undefined;
    }
  }
}
