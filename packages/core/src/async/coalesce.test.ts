import { expect, test } from "vitest";
import { SimulatedClock } from "../../test/simulated-clock.ts";
import { Flights, once, orUndefined } from "./coalesce.ts";

test("a flight has its name until its work ends, also by a failure", async () => {
  const flights = new Flights<number>(new SimulatedClock(), 1_000);
  const [good, bad] = [Promise.withResolvers<number>(), Promise.withResolvers<number>()];
  flights.lead("good", good.promise);
  flights.lead("bad", bad.promise);
  expect(flights.get("good")?.work).toBe(good.promise);
  good.resolve(1);
  bad.reject(new Error("gone"));
  await Promise.allSettled([good.promise, bad.promise]);
  expect([flights.get("good"), flights.get("bad"), flights.size]).toEqual([undefined, undefined, 0]);
});

test("a flight that outlives the patience counts as dead, and its end leaves the one after it alone", async () => {
  const clock = new SimulatedClock();
  const flights = new Flights<number>(clock, 1_000);
  const [first, second] = [Promise.withResolvers<number>(), Promise.withResolvers<number>()];
  const dead = flights.lead("a", first.promise);
  await clock.advance(999);
  expect(flights.get("a")).toBe(dead);
  flights.lead("b", second.promise);
  await clock.advance(1);
  expect(flights.get("a")).toBeUndefined();
  const next = flights.lead("a", second.promise);
  first.resolve(1);
  await first.promise;
  flights.end("a", dead);
  expect(flights.get("a")).toBe(next);
  expect([...flights.keys()]).toEqual(["b", "a"]);
});

test("a follower gets undefined when the leader fails, takes too long, or its own signal aborts", async () => {
  const clock = new SimulatedClock();
  const abort = new AbortController();
  const never = new Promise<number>(() => {});
  const failed = orUndefined(Promise.reject<number>(new Error("gone")), 10, clock);
  const left = orUndefined(never, 1e6, clock, abort.signal);
  abort.abort();
  const late = orUndefined(never, 10, clock);
  expect(await clock.run(Promise.all([failed, left, late, orUndefined(Promise.resolve(1), 10, clock)]))).toEqual([
    undefined,
    undefined,
    undefined,
    1,
  ]);
});

test("what is made once is made again after a failure alone", async () => {
  let calls = 0;
  const make = once(async () => {
    if (calls++ === 0) throw new Error("not yet");
    return calls;
  });
  await expect(make()).rejects.toThrow("not yet");
  expect([await make(), await make()]).toEqual([2, 2]);
});
