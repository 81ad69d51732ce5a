import type { Clock } from "@agarose/core";
import { expect, test } from "vitest";
import { KvSnapshot } from "../runtime/kv-snapshot.ts";
import { CONFIGURATION, formatConfiguration, parseConfiguration, type Configuration } from "./configuration.ts";

const configuration = (epoch: number): Configuration => ({
  epoch,
  at: 1,
  cached: new Map([
    ["v1", { key: "x", chunks: [0, 2], stripes: 3 }],
    ["v2", { key: "y", chunks: [0, 2], stripes: 3 }],
    ["v3", { key: "z", chunks: [0, 2], stripes: 1 }],
  ]),
  regions: [{ name: "a", meanMs: 80, sdMs: 8, down: false }],
});

/** A clock that moves by hand, and whose timers can die as those of an ended invocation do. */
function manualClock(): Clock & { advance(ms: number): void; killTimers(): void } {
  let now = 0;
  const timers = new Set<{ at: number; callback: () => void }>();
  return {
    now: () => now,
    after(ms, callback) {
      const timer = { at: now + ms, callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    killTimers: () => timers.clear(),
    advance(ms) {
      now += ms;
      for (const timer of timers) {
        if (timer.at > now) continue;
        timers.delete(timer);
        timer.callback();
      }
    },
  };
}

function setUp() {
  const clock = manualClock();
  const store = new KvSnapshot(clock, CONFIGURATION);
  const reads: PromiseWithResolvers<string | null>[] = [];
  const kv = {
    get: () => {
      const read = Promise.withResolvers<string | null>();
      reads.push(read);
      return read.promise;
    },
  } as unknown as KVNamespace;
  return { clock, store, reads, get: () => store.get(kv, () => {}) };
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

test("the first read waits for KV, later ones use what it said and look again beside the read", async () => {
  const { clock, reads, get } = setUp();
  const first = get();
  reads[0]!.resolve(formatConfiguration(configuration(1)));
  expect((await first).epoch).toBe(1);
  clock.advance(4_000);
  expect((await get()).epoch).toBe(1);
  expect(reads).toHaveLength(1);
  clock.advance(2_000);
  expect((await get()).epoch).toBe(1);
  reads[1]!.resolve(formatConfiguration(configuration(2)));
  await settled();
  expect((await get()).epoch).toBe(2);
});

test("a read waits only a moment for a KV that hangs, and later reads do not wait", async () => {
  const { clock, reads, get } = setUp();
  const first = get();
  clock.advance(300);
  expect((await first).epoch).toBe(0);
  reads[0]!.reject(new Error("KV is down"));
  await settled();
  expect((await get()).epoch).toBe(0);
  expect(reads).toHaveLength(1);
});

test("a load that died with its invocation does not keep the next one from starting", async () => {
  const { clock, reads, get } = setUp();
  void get();
  clock.killTimers();
  clock.advance(9_000);
  void get();
  expect(reads).toHaveLength(1);
  clock.advance(2_000);
  const later = get();
  expect(reads).toHaveLength(2);
  reads[1]!.resolve(formatConfiguration(configuration(7)));
  expect((await later).epoch).toBe(7);
});

test("an older epoch does not replace a newer one: KV may be a minute behind", async () => {
  const { clock, store, reads, get } = setUp();
  store.set(configuration(5));
  expect((await get()).epoch).toBe(5);
  clock.advance(6_000);
  await get();
  reads[0]!.resolve(formatConfiguration(configuration(4)));
  await settled();
  expect((await get()).epoch).toBe(5);
  store.set(configuration(3));
  expect((await get()).epoch).toBe(5);
});

test.each([
  ["no JSON", "{"],
  ["null", "null"],
  ["no epoch", formatConfiguration(configuration(1)).replace("epoch", "epochs")],
  ["a chunk index that is none", formatConfiguration(configuration(1)).replace("[0,2]", '["0"]')],
  ["fewer keys than versions", formatConfiguration(configuration(1)).replace('["x","y"]', '["x"]')],
  ["a key that is none", formatConfiguration(configuration(1)).replace('["x","y"]', '["x",1]')],
  ["a region without a latency", formatConfiguration(configuration(1)).replace("80", "null")],
])("a stored configuration with %s counts as none", (_name, text) => {
  expect(parseConfiguration(text)).toBeUndefined();
});

test("a stored configuration comes back as it was", () => {
  expect(parseConfiguration(formatConfiguration(configuration(1)))).toEqual(configuration(1));
});
