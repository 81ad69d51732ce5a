/** A limit on how fast bytes may pass, on average. */
import { sleep, type WriteContext } from "../commit/write-context.ts";

/** Resolves when the bytes that came before leave room for so many more. Rejects when the walk is aborted. */
export type Pace = (bytes: number) => Promise<void>;

/** Lets bytes pass at a rate; undefined for no limit. */
export function paceOf(bytesPerSecond: number | undefined, context: Pick<WriteContext, "clock" | "signal">): Pace {
  let freeMs = Number.NEGATIVE_INFINITY;
  return async (bytes) => {
    if (bytesPerSecond === undefined) return;
    const now = context.clock.now();
    const startMs = Math.max(now, freeMs);
    freeMs = startMs + (bytes / bytesPerSecond) * 1000;
    if (startMs > now) await sleep(startMs - now, context);
  };
}
