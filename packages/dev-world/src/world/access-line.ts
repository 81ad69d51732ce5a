/** The line between a client and the network, whose rate all of its downloads share. */
import { setTimeout as sleep } from "node:timers/promises";

/** The line of one client. */
export class AccessLine {
  /** When the last byte so far has come through, by `performance.now()`. */
  #freeAtMs = 0;

  /**
   * Resolves when these bytes have come through, after all that were sent before.
   *
   * @param bytesPerSecond the rate of the line at the moment; 0 is unlimited.
   */
  async carry(bytes: number, bytesPerSecond: number): Promise<void> {
    if (bytesPerSecond === 0) return;
    const nowMs = performance.now();
    this.#freeAtMs = Math.max(this.#freeAtMs, nowMs) + (bytes / bytesPerSecond) * 1000;
    if (this.#freeAtMs - nowMs >= 1) await sleep(this.#freeAtMs - nowMs);
  }
}
