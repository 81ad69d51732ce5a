/** Whose turn it is to be read in full, and what the limits admit. */
import type { Clock } from "@agarose/core";
import { expect, test } from "vitest";
import type { Config } from "../../config/config.ts";
import type { KeyGroup } from "../../listing/key-groups.ts";
import { deepReads, type DeepOptions } from "./deep-reads.ts";

const DAY_MS = 86_400_000;
const KEYS = Array.from({ length: 3_000 }, (_, index) => `object-${index}`);

/** Time passes only where something waits for it. */
class WaitedTime implements Clock {
  ms = 0;
  now(): number {
    return this.ms;
  }
  after(ms: number, callback: () => void): () => void {
    this.ms += ms;
    queueMicrotask(callback);
    return () => {};
  }
}

function groupOf(key: string, bytes = 1_000): KeyGroup {
  const store = { region: { name: "tokyo" } };
  return { key, chunks: [{ store, bytes }], manifests: [], claims: [], marks: [], repairs: [] } as unknown as KeyGroup;
}

function readsAt(ms: number, options: DeepOptions, clock: Clock = new WaitedTime(), signal = AbortSignal.any([])) {
  const config = { regions: [{ name: "tokyo", egressUsdPerGb: 1_000 }] } as unknown as Config;
  return deepReads(options, { config, clock, random: () => 0.5, nowMs: () => ms, signal });
}

test("each object has its turn once within the age, whichever day it begins, and about as many each day", () => {
  const options = { ageMs: 30 * DAY_MS, everyMs: DAY_MS };
  const turns = new Map<string, number>();
  for (let day = 0; day < 30; day++) {
    const reads = readsAt(1_800_000_000_000 + day * DAY_MS, options);
    const due = KEYS.filter((key) => reads.isDue(groupOf(key)));
    for (const key of due) turns.set(key, (turns.get(key) ?? 0) + 1);
    expect(due.length).toBeGreaterThan(50);
    expect(due.length).toBeLessThan(150);
  }
  expect([...turns.values()].every((count) => count === 1)).toBe(true);
  expect(turns.size).toBe(KEYS.length);
});

test("an age below the time between walks makes every walk read everything", () => {
  const reads = readsAt(0, { ageMs: DAY_MS / 2, everyMs: DAY_MS });
  expect(KEYS.every((key) => reads.isDue(groupOf(key)))).toBe(true);
});

test("a share is by chance, and without options nothing is due", () => {
  expect(readsAt(0, { share: 0.51 }).isDue(groupOf("a"))).toBe(true);
  expect(readsAt(0, { share: 0.5 }).isDue(groupOf("a"))).toBe(false);
  expect(readsAt(0, {}).isDue(groupOf("a"))).toBe(false);
});

test("money that is spent admits no other read, but a smaller one that still fits", () => {
  const reads = readsAt(0, { usd: 0.0025 });
  expect(reads.reserve(groupOf("a"))).toEqual({ bytes: 1_000, usd: 0.001 });
  expect(reads.reserve(groupOf("b", 2_000))).toBeUndefined();
  expect(reads.reserve(groupOf("c"))).toBeDefined();
  expect(reads.reserve(groupOf("d"))).toBeUndefined();
});

test("reads run one after the other, each when the bandwidth has paid for those before it", async () => {
  const clock = new WaitedTime();
  const reads = readsAt(0, { bytesPerSecond: 100 }, clock);
  const starts: number[] = [];
  let running = 0;
  const read = async (): Promise<void> => {
    expect(++running).toBe(1);
    starts.push(clock.ms);
    await new Promise(setImmediate);
    running--;
  };
  await Promise.all([50, 200, 10].map((bytes) => reads.run({ bytes, usd: 0 }, read)));
  expect(starts).toEqual([0, 500, 2_500]);
});

test("a read that fails holds up no other, and an abort ends the wait", async () => {
  const abort = new AbortController();
  const clock: Clock = { now: () => 0, after: () => () => {} };
  const reads = readsAt(0, { bytesPerSecond: 1 }, clock, abort.signal);
  const failed = reads.run({ bytes: 0, usd: 0 }, () => Promise.reject(new Error("gone")));
  const next = reads.run({ bytes: 9, usd: 0 }, () => Promise.resolve("read"));
  const waiting = reads.run({ bytes: 9, usd: 0 }, () => Promise.resolve("never"));
  await expect(failed).rejects.toThrow("gone");
  expect(await next).toBe("read");
  abort.abort(new Error("asked to end"));
  await expect(waiting).rejects.toThrow("asked to end");
});
