/** A clock for tests of regions that hang: what is waited for them does not depend on the machine's speed. */
import { systemClock, type Clock } from "@agarose/core";

export interface RecordedClock {
  /** The system's timers under a constant time. */
  readonly clock: Clock;
  /** Returns the sum of all timers that have ended, in milliseconds. */
  waitedMs(): number;
}

export function recordedClock(): RecordedClock {
  let waitedMs = 0;
  const after: Clock["after"] = (ms, callback) =>
    systemClock.after(ms, () => {
      waitedMs += ms;
      callback();
    });
  return { clock: { now: () => 0, after }, waitedMs: () => waitedMs };
}
