import { AgaroseError } from "@agarose/core";
import type { StripeData } from "@agarose/core/read";
import { beforeEach, describe, expect, test } from "vitest";
import { StripeCoalescing } from "./stripe-coalescing.ts";

const DATA: StripeData = { data: [new Uint8Array([1])], made: () => [], decoding: { ms: 0, shards: 0 } };

let nowMs: number;
let flights: StripeCoalescing;
let timers: (() => void)[];
let reads: { signal: AbortSignal; resolve: (data: StripeData) => void; reject: (error: unknown) => void }[];
let kept: Promise<unknown>[];
beforeEach(() => {
  nowMs = 0;
  timers = [];
  reads = [];
  kept = [];
  flights = new StripeCoalescing({
    now: () => nowMs,
    after(_ms, callback) {
      timers.push(callback);
      return () => {
        timers = timers.filter((timer) => timer !== callback);
      };
    },
  });
});

function read(signal = new AbortController().signal, stripe = 0, version = "v"): Promise<StripeData> {
  return flights.read({
    version,
    stripe,
    signal,
    waitUntil: (promise) => void kept.push(promise),
    read(own) {
      const { promise, resolve, reject } = Promise.withResolvers<StripeData>();
      reads.push({ signal: own, resolve, reject });
      return promise;
    },
  });
}

describe("reads of one stripe", () => {
  test("at one time are one, and the next one after them is another", async () => {
    const all = Array.from({ length: 100 }, () => read());
    expect(reads).toHaveLength(1);
    reads[0]!.resolve(DATA);
    for (const data of await Promise.all(all)) expect(data).toBe(DATA);
    expect(flights.inFlight).toBe(0);
    expect(flights.counters).toEqual({ led: 1, followed: 99 });
    void read();
    expect(reads).toHaveLength(2);
  });

  test("are not mixed up with other stripes and versions", () => {
    void read();
    void read(undefined, 1);
    void read(undefined, 0, "w");
    expect(reads).toHaveLength(3);
  });

  test("fail together, and leave nothing behind", async () => {
    const all = [read(), read(), read()];
    reads[0]!.reject(new AgaroseError("NOT_ENOUGH_CHUNKS", "3 of 4"));
    for (const result of await Promise.allSettled(all)) {
      expect(result).toMatchObject({ status: "rejected", reason: { code: "NOT_ENOUGH_CHUNKS" } });
    }
    expect(flights.inFlight).toBe(0);
    expect(timers).toHaveLength(0);
  });
});

describe("a reader that leaves", () => {
  test("as the first goes at once, and its requests continue for the others, kept alive by its invocation", async () => {
    const abort = new AbortController();
    const first = read(abort.signal);
    const second = read();
    abort.abort();
    await expect(first).rejects.toMatchObject({ code: "ABORTED" });
    expect(reads[0]!.signal.aborted).toBe(false);
    expect(kept).toHaveLength(1);
    reads[0]!.resolve(DATA);
    expect(await second).toBe(DATA);
  });

  test("as one of the others disturbs none of them", async () => {
    const first = read();
    const abort = new AbortController();
    const second = read(abort.signal);
    abort.abort();
    await expect(second).rejects.toMatchObject({ code: "ABORTED" });
    reads[0]!.resolve(DATA);
    expect(await first).toBe(DATA);
  });

  test("as the only one ends its requests, and the next read starts its own", async () => {
    const abort = new AbortController();
    const first = read(abort.signal);
    abort.abort();
    await expect(first).rejects.toMatchObject({ code: "ABORTED" });
    expect(reads[0]!.signal.aborted).toBe(true);
    const second = read();
    expect(reads).toHaveLength(2);
    reads[1]!.resolve(DATA);
    expect(await second).toBe(DATA);
  });
});

test("one of those that wait too long starts again, because the first may have died, and the others wait for it", async () => {
  void read();
  const others = [read(), read(), read()];
  for (const timer of timers.splice(0)) timer();
  await new Promise((resolve) => setTimeout(resolve));
  expect(reads).toHaveLength(2);
  reads[1]!.resolve(DATA);
  for (const data of await Promise.all(others)) expect(data).toBe(DATA);
});

test("a flight that died is forgotten, by reads of any stripe, and makes no read wait", () => {
  void read();
  void read(undefined, 1);
  nowMs = 9_999;
  void read(undefined, 2);
  expect(flights.inFlight).toBe(3);
  nowMs = 10_000;
  void read();
  expect(reads).toHaveLength(4);
  expect(flights.inFlight).toBe(2);
});
