import * as fc from "fast-check";
import { expect, test } from "vitest";
import { FrequencySketch } from "./frequency-sketch.ts";
import { RequestTally } from "./request-tally.ts";

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
