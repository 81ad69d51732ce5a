import { expect, test } from "vitest";
import { SimulatedClock } from "@agarose/core/testing";
import { RegionLimits } from "./region-limits.ts";

test("no more requests are under way than may be, and all of them are made", async () => {
  const clock = new SimulatedClock();
  const limits = new RegionLimits(clock, 3);
  let underWay = 0;
  let most = 0;
  const request = async (): Promise<void> => {
    most = Math.max(most, ++underWay);
    await new Promise<void>((resolve) => void clock.after(25, resolve));
    underWay--;
  };
  await clock.run(Promise.all(Array.from({ length: 20 }, () => limits.run("r", request))));
  expect([most, underWay, limits.waited]).toEqual([3, 0, 17]);
});

test("regions do not wait for each other, and 0 sets no limit", async () => {
  const clock = new SimulatedClock();
  const limits = new RegionLimits(clock, 1);
  const never = new Promise<never>(() => {});
  void limits.run("r0", () => never);
  expect(await limits.run("r1", async () => "done")).toBe("done");
  const unlimited = new RegionLimits(clock, 0);
  void unlimited.run("r0", () => never);
  expect(await unlimited.run("r0", async () => "done")).toBe("done");
});

test("a request that failed, or whose invocation died, makes room", async () => {
  const clock = new SimulatedClock();
  const limits = new RegionLimits(clock, 1);
  await expect(limits.run("r", () => Promise.reject(new Error("lost")))).rejects.toThrow("lost");
  void limits.run("r", () => new Promise(() => {}));
  expect(await clock.run(limits.run("r", async () => clock.now()))).toBeGreaterThan(30_000);
});

test("a request that is aborted while it waits is never made", async () => {
  const clock = new SimulatedClock();
  const limits = new RegionLimits(clock, 1);
  void limits.run("r", () => new Promise(() => {}));
  const abort = new AbortController();
  let made = false;
  const waiting = limits.run("r", async () => void (made = true), abort.signal);
  abort.abort(new Error("gone"));
  await expect(clock.run(waiting)).rejects.toThrow("gone");
  expect(made).toBe(false);
});
