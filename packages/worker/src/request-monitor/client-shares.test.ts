import { expect, test } from "vitest";
import { ClientShares, REQUESTS_PER_CLIENT_MAX } from "./client-shares.ts";
import { READS_PER_KEY_MAX } from "./telemetry-intake.ts";
import { TERM_MS } from "./telemetry-token.ts";

let nowMs = 1_000 * TERM_MS;
const counted = (shares: ClientShares, client: string, keys: readonly string[]): number =>
  keys.filter((key) => shares.admits(client, key)).length;

test("one client that asks 200 times for one key counts for less than 60 readers of another", () => {
  const shares = new ClientShares(() => nowMs);
  const readers = Array.from({ length: 60 }, (_, i) => counted(shares, `198.51.100.${i}`, ["front-page"]));
  expect(readers.reduce((sum, count) => sum + count, 0)).toBe(60);
  expect(
    counted(
      shares,
      "203.0.113.7",
      Array.from({ length: 200 }, () => "junk"),
    ),
  ).toBe(READS_PER_KEY_MAX);
});

test("one client counts for a bounded number of keys in a term, and again in the next one", () => {
  const shares = new ClientShares(() => nowMs);
  const keys = Array.from({ length: 1_000 }, (_, i) => `junk-${i}`);
  expect(counted(shares, "203.0.113.7", keys)).toBeLessThanOrEqual(REQUESTS_PER_CLIENT_MAX);
  expect(counted(shares, "203.0.113.8", ["page"]), "others count as before").toBe(1);
  nowMs += TERM_MS;
  expect(counted(shares, "203.0.113.7", ["page"])).toBe(1);
});

test("the term outlives aging of the sketch: 200,000 keys of one client count 250 times at most", () => {
  const shares = new ClientShares(() => nowMs);
  let admitted = 0;
  for (let i = 0; i < 200_000; i++) if (shares.admits("203.0.113.7", `k${i}`)) admitted++;
  expect(admitted).toBeLessThanOrEqual(REQUESTS_PER_CLIENT_MAX);
});

test("requests without a client address always count: there is no platform that reports one", () => {
  const shares = new ClientShares(() => nowMs);
  expect(Array.from({ length: 50 }, () => shares.admits(undefined, "k")).every(Boolean)).toBe(true);
});

test("a request for a part of an object counts with that probability, and one for a whole object always", () => {
  const shares = new ClientShares(
    () => nowMs,
    () => 0.3,
  );
  expect([1, 0.35, 0.3, 1 / 16e6].map((part) => shares.admits("203.0.113.7", "video", part))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});
