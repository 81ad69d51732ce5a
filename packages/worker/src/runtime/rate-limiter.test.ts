import { SimulatedClock } from "@agarose/core/testing";
import { expect, test } from "vitest";
import { RateLimiter } from "./rate-limiter.ts";

const LIMITS = { burst: 5, perSecond: 1 };

test("blocks a client that has used up its tokens, and no other, until new ones have come", async () => {
  const clock = new SimulatedClock();
  const limiter = new RateLimiter(clock, LIMITS);
  for (let i = 0; i < 5; i++) {
    expect(limiter.isBlocked("a")).toBe(false);
    await limiter.spend("a");
  }
  expect([limiter.isBlocked("a"), limiter.isBlocked("b"), limiter.refused]).toEqual([true, false, 1]);
  await clock.advance(1_000);
  expect(limiter.isBlocked("a")).toBe(false);
  await limiter.spend("a");
  expect(limiter.isBlocked("a")).toBe(true);
});

test("blocks a client that the binding refuses for ten seconds, and works without a binding that fails", async () => {
  const clock = new SimulatedClock();
  const limiter = new RateLimiter(clock, LIMITS);
  await limiter.spend("a", { limit: async () => ({ success: false }) });
  await limiter.spend("b", { limit: () => Promise.reject(new Error("unavailable")) });
  expect([limiter.isBlocked("a"), limiter.isBlocked("b")]).toEqual([true, false]);
  await clock.advance(10_000);
  expect(limiter.isBlocked("a")).toBe(true);
  await clock.advance(1_000);
  expect(limiter.isBlocked("a")).toBe(false);
});

test("remembers 10,000 clients and no more, and limits none without an address", async () => {
  const limiter = new RateLimiter(new SimulatedClock(), { burst: 1, perSecond: 0.001 });
  for (let i = 0; i < 10_001; i++) await limiter.spend(`c${i}`);
  expect([limiter.isBlocked("c10000"), limiter.isBlocked("c0")]).toEqual([true, false]);
  await limiter.spend(undefined);
  expect(limiter.isBlocked(undefined)).toBe(false);
});

test("who does a hundred at once, whenever it may, does no more in the long run than who does one after the other", async () => {
  const clock = new SimulatedClock();
  const limiter = new RateLimiter(clock, LIMITS);
  let done = 0;
  for (let second = 0; second < 600; second++) {
    const allowed = Array.from({ length: 100 }, () => !limiter.isBlocked("a")).filter(Boolean);
    await Promise.all(allowed.map(() => limiter.spend("a")));
    done += allowed.length;
    await clock.advance(1_000);
  }
  expect(done).toBeGreaterThan(600 - LIMITS.burst);
  expect(done, "and those in flight with the last token").toBeLessThan(600 + LIMITS.burst + 100);
});
