import { SimulatedClock } from "@agarose/core/testing";
import type { Clock } from "@agarose/core";
import { expect, test } from "vitest";
import { BatchFlusher, FLUSH_AFTER_MS_MAX, InFlight } from "./batch-flusher.ts";

/** Cloudflare ends an invocation 30 s after its answer, with all of its timers. */
const WAIT_UNTIL_MS = 30_000;

/** A clock whose timers belong to the invocation that set them, and die with it. */
function mortalClock(): { clock: Clock; time: SimulatedClock; killed: () => number; newInvocation: () => void } {
  const time = new SimulatedClock();
  let bornMs = 0;
  let killed = 0;
  const clock: Clock = {
    now: () => time.now(),
    after(ms, callback) {
      if (time.now() + ms - bornMs <= WAIT_UNTIL_MS) return time.after(ms, callback);
      killed++;
      return () => {};
    },
  };
  return { clock, time, killed: () => killed, newInvocation: () => void (bornMs = time.now()) };
}

test("keeps trying after an hour of refusals: no wait is longer than an invocation lives", async () => {
  const { clock, time, newInvocation } = mortalClock();
  let isWell = false;
  const flushes = { accepted: 0, refused: 0 };
  const flusher = new BatchFlusher(clock, async () => {
    flushes[isWell ? "accepted" : "refused"]++;
    return isWell;
  });
  for (let second = 0; second < 3_600; second++) {
    newInvocation();
    flusher.plan(() => {});
    await time.advance(1_000);
  }
  expect(flushes, "the fault fired for the whole hour").toMatchObject({ accepted: 0 });
  expect(flushes.refused).toBeGreaterThan(3_600_000 / FLUSH_AFTER_MS_MAX / 2);
  isWell = true;
  for (let second = 0; second < 60; second++) {
    newInvocation();
    flusher.plan(() => {});
    await time.advance(1_000);
  }
  expect(FLUSH_AFTER_MS_MAX).toBeLessThan(WAIT_UNTIL_MS);
  expect(flushes.accepted).toBeGreaterThan(10);
});

test("plans another flush when the one before it died with its invocation", async () => {
  const { clock, time, killed, newInvocation } = mortalClock();
  let flushes = 0;
  const flusher = new BatchFlusher(clock, async () => ++flushes > 0);
  newInvocation();
  await time.advance(WAIT_UNTIL_MS - 1_000);
  flusher.plan(() => {});
  expect(killed(), "the fault fired: the invocation ends before its flush").toBe(1);
  newInvocation();
  await time.advance(3_000);
  flusher.plan(() => {});
  expect(flushes, "not overdue yet").toBe(0);
  await time.advance(2_000);
  newInvocation();
  flusher.plan(() => {});
  await time.advance(2_000);
  expect(flushes).toBe(1);
});

test("waits for every task in flight, whether it succeeds or fails", async () => {
  const clock = new SimulatedClock();
  const inFlight = new InFlight(clock);
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  void inFlight.add(first.promise);
  inFlight.add(second.promise).catch(() => {});
  let hasEnded = false;
  const ended = inFlight.ended().then(() => (hasEnded = true));
  first.resolve();
  await Promise.resolve();
  expect(hasEnded).toBe(false);
  second.reject(new Error("refused"));
  await ended;
  expect(clock.now()).toBe(0);
  expect(clock.pendingTimers).toBe(0);
});

test("waits once, for five seconds, for a task that never ends because its invocation was killed", async () => {
  const clock = new SimulatedClock();
  const inFlight = new InFlight(clock);
  void inFlight.add(new Promise(() => {}));
  await clock.run(inFlight.ended());
  expect(clock.now()).toBe(5_000);
  await clock.run(inFlight.ended());
  expect(clock.now()).toBe(5_000);
});
