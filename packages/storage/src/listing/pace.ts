/** A limit on how fast bytes may pass, on average. */
import { sleep, type WriteContext } from "../commit/write-context.ts";

/** Lets bytes pass at a rate. */
export class Pace {
  readonly #bytesPerSecond: number | undefined;
  readonly #context: Pick<WriteContext, "clock" | "signal">;
  #freeMs = Number.NEGATIVE_INFINITY;

  /** Undefined for no limit. */
  constructor(bytesPerSecond: number | undefined, context: Pick<WriteContext, "clock" | "signal">) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#context = context;
  }

  /** Resolves when those that came before leave room. Rejects when the walk is aborted. */
  async pass(bytes: number): Promise<void> {
    if (this.#bytesPerSecond === undefined) return;
    const now = this.#context.clock.now();
    const startMs = Math.max(now, this.#freeMs);
    this.#freeMs = startMs + (bytes / this.#bytesPerSecond) * 1000;
    if (startMs > now) await sleep(startMs - now, this.#context);
  }
}
