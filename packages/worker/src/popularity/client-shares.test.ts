import { expect, test } from "vitest";
import { ClientShares, READS_PER_KEY_MAX, REQUESTS_PER_CLIENT_MAX, TERM_MS } from "./client-shares.ts";
import { CLIENTS_PER_NETWORK } from "../runtime/client-address.ts";

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

test.each([
  ["a /24 of IPv4", (i: number) => `203.0.113.${i % 256}`],
  ["a /48 of IPv6", (i: number) => `2001:db8:7:${(i % 65_536).toString(16)}/64`],
])("a network counts as some clients however many addresses it has: %s", (_, addressOf) => {
  const shares = new ClientShares(() => nowMs);
  let ofOneKey = 0;
  for (let i = 0; i < 10_000; i++) if (shares.admits(addressOf(i), "junk")) ofOneKey++;
  expect(ofOneKey).toBe(CLIENTS_PER_NETWORK * READS_PER_KEY_MAX);
  let more = 0;
  for (let i = 0; i < 20_000; i++) if (shares.admits(addressOf(i), `junk-${i % 1_000}`)) more++;
  expect(ofOneKey + more).toBeLessThanOrEqual(CLIENTS_PER_NETWORK * REQUESTS_PER_CLIENT_MAX);
  expect(more).toBeGreaterThan(0.8 * CLIENTS_PER_NETWORK * REQUESTS_PER_CLIENT_MAX);
  expect(counted(shares, "198.51.100.9", ["page"]), "others count as before").toBe(1);
});
