import * as fc from "fast-check";
import { expect, test } from "vitest";
import { FrequencySketch } from "./frequency-sketch.ts";
import { COUNTED_KEYS_MAX, RequestTally } from "./request-tally.ts";

test("of ten million different keys memory holds some thousands, and keys asked for again and again are among them", () => {
  const tally = new RequestTally(COUNTED_KEYS_MAX);
  const { sketchBytes } = tally;
  const asked = 10_000_000;
  const popular = Array.from({ length: 100 }, (_, i) => `popular/${i}`);
  const every = 50;
  let most = 0;
  for (let i = 0; i < asked; i++) {
    tally.add(`once/${i}`);
    // The popular ones come only when the table has been full for long, so each has to win its place.
    if (i > asked / 2 && i % every === 0) tally.add(popular[(i / every) % popular.length]!);
    most = Math.max(most, tally.size);
  }
  expect(most).toBe(COUNTED_KEYS_MAX);
  expect(tally.sketchBytes).toBe(sketchBytes);
  const counts = tally.drain();
  const requestsOfEach = asked / 2 / every / popular.length;
  for (const key of popular) expect(counts.get(key), key).toBeGreaterThan(0.9 * requestsOfEach);
  const counted = [...counts.values()].reduce((sum, count) => sum + count, 0);
  expect(counted + tally.dropped).toBe(asked + 100_000 - 1);
});

test("every request is counted or dropped, and with room for all keys none is dropped", () => {
  let sawDropped = false;
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 1, max: 5 })), { maxLength: 200 }),
      fc.integer({ min: 1, max: 40 }),
      (requests, keysMax) => {
        const tally = new RequestTally(keysMax);
        const exact = new Map<string, number>();
        for (const [n, times] of requests) {
          tally.add(`k${n}`, times);
          exact.set(`k${n}`, (exact.get(`k${n}`) ?? 0) + times);
        }
        const total = [...exact.values()].reduce((sum, count) => sum + count, 0);
        const counts = tally.drain();
        sawDropped ||= tally.dropped > 0;
        expect(counts.size).toBeLessThanOrEqual(keysMax);
        expect([...counts.values()].reduce((sum, count) => sum + count, 0) + tally.dropped).toBe(total);
        for (const [key, count] of counts) expect(count).toBeLessThanOrEqual(exact.get(key)!);
        if (exact.size <= keysMax) expect(counts).toEqual(exact);
      },
    ),
  );
  expect(sawDropped).toBe(true);
});

test("what could not be handed on is put back, beside what came since", () => {
  const tally = new RequestTally(10);
  tally.add("a", 3);
  const taken = tally.drain();
  tally.add("a");
  tally.add("b");
  tally.restore(taken);
  expect([...tally.drain()]).toEqual([
    ["a", 4],
    ["b", 1],
  ]);
});

test("what was popular fades: after as many requests as ten times the keys, all estimates are halved", () => {
  const sketch = new FrequencySketch(64);
  sketch.add("old", 200);
  for (let i = 0; i < 439; i++) sketch.add(`k${i % 20}`);
  expect(sketch.estimate("old")).toBe(200);
  sketch.add("k0");
  expect(sketch.estimate("old")).toBe(100);
});
