import { expect, test } from "vitest";
import { SimulatedClock } from "@agarose/core/testing";
import { InFlight } from "./in-flight.ts";

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
