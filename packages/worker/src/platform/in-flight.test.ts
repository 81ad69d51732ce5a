import { expect, test } from "vitest";
import { SimulatedClock } from "@agarose/core/testing";
import { UnderWay } from "./in-flight.ts";

test("what is under way is waited for, whether it succeeds or fails", async () => {
  const clock = new SimulatedClock();
  const underWay = new UnderWay(clock);
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  void underWay.add(first.promise);
  underWay.add(second.promise).catch(() => {});
  let hasEnded = false;
  const ended = underWay.ended().then(() => (hasEnded = true));
  first.resolve();
  await Promise.resolve();
  expect(hasEnded).toBe(false);
  second.reject(new Error("refused"));
  await ended;
  expect(clock.now()).toBe(0);
  expect(clock.pendingTimers).toBe(0);
});

test("what never ends, because its invocation was killed, is waited for once and for five seconds", async () => {
  const clock = new SimulatedClock();
  const underWay = new UnderWay(clock);
  void underWay.add(new Promise(() => {}));
  await clock.run(underWay.ended());
  expect(clock.now()).toBe(5_000);
  await clock.run(underWay.ended());
  expect(clock.now()).toBe(5_000);
});
