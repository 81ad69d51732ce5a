import { expect, test } from "vitest";
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
