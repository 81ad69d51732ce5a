import { systemClock } from "@agarose/core";
import { expect, test, vi } from "vitest";
import { MONITOR_SHARDS, shardOf } from "./monitor-shards.ts";
import { RequestCounter } from "./request-counter.ts";
import { COUNTED_KEYS_MAX } from "./request-tally.ts";

function setUp(clientsMax?: number) {
  const counted = new Map<string, number>();
  const clients: [key: string, clients: readonly string[] | undefined][] = [];
  let refusals = 0;
  let held: Promise<void> | undefined;
  const background: Promise<unknown>[] = [];
  const waitUntil = (promise: Promise<unknown>): void => void background.push(promise);
  const counter = new RequestCounter(
    systemClock,
    {
      count: async (_shard, entries) => {
        await held;
        if (refusals > 0) {
          refusals--;
          throw new Error("overloaded");
        }
        for (const [key, requests, names] of entries) {
          counted.set(key, (counted.get(key) ?? 0) + requests);
          clients.push([key, names]);
        }
        return 0;
      },
      suspect: async () => {},
      observe: async () => {},
      notePeers: async () => {},
    },
    clientsMax,
  );
  return {
    counter,
    counted,
    clients,
    background,
    refuse: (times: number) => void (refusals = times),
    /** Makes Durable Objects answer no sooner than `until`. */
    hold: (until: Promise<void>) => void (held = until),
    count: (key: string, ...by: string[]) => counter.count(key, waitUntil, by),
    flush: () => counter.flush(waitUntil),
  };
}

test("sends requests on in batches beside the reads, two seconds after the first", async () => {
  vi.useFakeTimers();
  try {
    const { count, counted, background } = setUp();
    for (const key of ["a", "b", "a"]) count(key);
    expect(background).toHaveLength(1);
    expect(counted.size).toBe(0);
    await vi.advanceTimersByTimeAsync(2_000);
    expect([...counted]).toEqual([
      ["a", 2],
      ["b", 1],
    ]);
    count("a");
    expect(background).toHaveLength(2);
  } finally {
    vi.useRealTimers();
  }
});

test("what a Durable Object refuses is handed on the next time", async () => {
  const log = vi.spyOn(console, "warn").mockImplementation(() => {});
  const { count, counted, flush, refuse } = setUp();
  count("a");
  refuse(1);
  await flush();
  expect(log).toHaveBeenCalledOnce();
  expect(counted.size).toBe(0);
  count("a");
  await flush();
  expect(counted.get("a")).toBe(2);
  log.mockRestore();
});

test("hands on no more clients of a key than a fill needs, each once, also after a refusal, and none where one is enough", async () => {
  const log = vi.spyOn(console, "warn").mockImplementation(() => {});
  const { count, clients, flush, refuse } = setUp(2);
  for (const client of ["net1", "net1", "net2", "net3"]) count("a", client);
  count("b", "net1");
  refuse(2);
  await flush();
  expect(clients).toEqual([]);
  await flush();
  expect(clients.toSorted()).toEqual([
    ["a", ["net1", "net2"]],
    ["b", ["net1"]],
  ]);
  const single = setUp(1);
  single.count("a", "net1");
  await single.flush();
  expect(single.clients).toEqual([["a", undefined]]);
  log.mockRestore();
});

test("a flush waits for what another one is handing on", async () => {
  const { count, counted, flush, hold } = setUp();
  const released = Promise.withResolvers<void>();
  hold(released.promise);
  count("a");
  void flush();
  let hasEnded = false;
  const second = flush().then(() => (hasEnded = true));
  await new Promise((resolve) => setTimeout(resolve));
  expect({ hasEnded, counted: counted.size }).toEqual({ hasEnded: false, counted: 0 });
  released.resolve();
  await second;
  expect(counted.get("a")).toBe(1);
});

test("memory is bounded: of keys beyond the room for them only the number of requests is known", async () => {
  const { count, counter, counted, flush } = setUp();
  for (let i = 0; i < COUNTED_KEYS_MAX + 5; i++) count(`key-${i}`);
  expect(counter.dropped).toBe(5);
  await flush();
  expect(counted.size).toBe(COUNTED_KEYS_MAX);
});

test("while Durable Objects refuse, they are asked less and less often, and as before once they take counts again", async () => {
  vi.useFakeTimers();
  const log = vi.spyOn(console, "warn").mockImplementation(() => {});
  try {
    const { count, counted, background, refuse } = setUp();
    refuse(2);
    const flushedWithin = async (ms: number): Promise<boolean> => {
      let ended = false;
      void background.at(-1)!.then(() => (ended = true));
      await vi.advanceTimersByTimeAsync(ms);
      return ended;
    };
    count("a");
    expect(await flushedWithin(2_000)).toBe(true);
    count("a");
    expect(await flushedWithin(3_999)).toBe(false);
    expect(await flushedWithin(1)).toBe(true);
    expect(log).toHaveBeenCalledTimes(2);
    count("a");
    expect(await flushedWithin(8_000)).toBe(true);
    expect(counted.get("a")).toBe(3);
    count("a");
    expect(await flushedWithin(2_000)).toBe(true);
    expect(counted.get("a")).toBe(4);
  } finally {
    log.mockRestore();
    vi.useRealTimers();
  }
});

test("keys spread over all shards, and each has one shard", () => {
  const counts = Array.from({ length: MONITOR_SHARDS }, () => 0);
  for (let i = 0; i < 4_000; i++) counts[shardOf(`photos/${i}.jpg`)]!++;
  for (const count of counts) expect(count).toBeGreaterThan(800);
  expect(shardOf("größe")).toBe(shardOf("größe"));
});
