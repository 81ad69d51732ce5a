import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { SimulatedClock } from "@agarose/core/testing";
import { MemoryBudget, STALLED_MS, STALLED_MS_CONTENDED, type MemoryLease } from "./memory-budget.ts";

const NEVER = new AbortController().signal;
let clock: SimulatedClock;
beforeEach(() => {
  clock = new SimulatedClock();
});

describe("the memory budget of reads", () => {
  test("gives a lone read all there is, and one unit at least however large it is", () => {
    const memory = new MemoryBudget(clock, 100);
    const lease = memory.tryAcquire({ version: "v1", bytes: 30 })!;
    expect(lease.units()).toBe(3);
    lease.release();
    expect(memory.tryAcquire({ version: "v2", bytes: 1000 })!.units()).toBe(1);
  });

  test("shrinks what reads may hold as others come, and lets it grow when they leave", () => {
    const memory = new MemoryBudget(clock, 100);
    const first = memory.tryAcquire({ version: "v3", bytes: 20 })!;
    const second = memory.tryAcquire({ version: "v4", bytes: 20 })!;
    expect([first.units(), second.units()]).toEqual([2, 2]);
    second.release();
    second.release();
    expect(memory.reads, "a lease is given back once").toBe(1);
    expect(first.units()).toBe(5);
  });

  test("counts further reads of one object for less, because they hold the same stripes", () => {
    const memory = new MemoryBudget(clock, 100);
    const leases = Array.from({ length: 5 }, () => memory.tryAcquire({ version: "same", bytes: 50 }));
    expect(leases.map((lease) => lease !== undefined)).toEqual([true, true, true, true, true]);
    expect(memory.tryAcquire({ version: "same", bytes: 50 }), "50 + 4 x 12.5 are all there is").toBeUndefined();
    for (const lease of leases) lease!.release();
    expect(memory.tryAcquire({ version: "same", bytes: 50 })!.units(), "the first of them again").toBe(2);
  });

  test("refuses a read that does not fit, and lets it wait until another has ended", async () => {
    const memory = new MemoryBudget(clock, 100);
    const first = memory.tryAcquire({ version: "v5", bytes: 60 })!;
    expect(memory.tryAcquire({ version: "v6", bytes: 60 })).toBeUndefined();
    clock.after(1_000, () => first.release());
    await clock.run(memory.acquire({ version: "v7", bytes: 60 }, NEVER));
    expect(memory.reads).toBe(1);
    expect(clock.now()).toBeLessThan(1_100);
  });

  test("ends a wait with BUSY and both numbers", async () => {
    const memory = new MemoryBudget(clock, 100);
    const reading = memory.tryAcquire({ version: "v8", bytes: 60 })!;
    const readOn = (): void => {
      reading.progress();
      clock.after(1_000, readOn);
    };
    readOn();
    const waiting = clock.run(memory.acquire({ version: "v9", bytes: 60 }, NEVER));
    await expect(waiting).rejects.toMatchObject({ code: "BUSY", details: { reads: 1, bytesMax: 100 } });
    expect(memory.reads).toBe(1);
  });

  test("ends a wait whose client has gone", async () => {
    const memory = new MemoryBudget(clock, 100);
    memory.tryAcquire({ version: "v10", bytes: 60 });
    const gone = new AbortController();
    clock.after(100, () => gone.abort());
    await expect(clock.run(memory.acquire({ version: "v11", bytes: 60 }, gone.signal))).rejects.toThrow(/abort/);
    expect(clock.now()).toBeLessThan(200);
  });

  test("ends the lease of a client that takes nothing for 30 s, or for 10 s while another read waits", async () => {
    const memory = new MemoryBudget(clock, 100);
    const stalled = memory.tryAcquire({ version: "v", bytes: 60 })!;
    await clock.advance(STALLED_MS_CONTENDED - 1);
    expect(memory.tryAcquire({ version: "w", bytes: 60 }), "not stalled yet").toBeUndefined();
    stalled.progress();
    await clock.advance(STALLED_MS_CONTENDED - 1);
    expect(memory.tryAcquire({ version: "w", bytes: 60 }), "progress counts").toBeUndefined();
    await clock.advance(1);
    const other = memory.tryAcquire({ version: "w", bytes: 60 })!;
    expect([other !== undefined, stalled.hasEnded(), memory.expired]).toEqual([true, true, 1]);
    stalled.release();
    expect(memory.reads, "it has ended already").toBe(1);
    await clock.advance(STALLED_MS - 1);
    expect(other.hasEnded()).toBe(false);
    await clock.advance(1);
    expect(other.hasEnded()).toBe(true);
    expect(memory.reads).toBe(0);
  });

  /** Takes so many bytes every second for so long. */
  async function drip(lease: MemoryLease, bytesPerSecond: number, seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      await clock.advance(1_000);
      lease.took(bytesPerSecond);
    }
  }

  test("ends the lease of a client that drips where another read waits, and not before", async () => {
    const memory = new MemoryBudget(clock, 100);
    const dripping = memory.tryAcquire({ version: "v", bytes: 60 })!;
    // Bytes that fill the buffers on the way in the beginning do not count as pace.
    dripping.took(3_000_000);
    await drip(dripping, 60_000, 10);
    expect(memory.tryAcquire({ version: "w", bytes: 60 }), "the first ten seconds").toBeUndefined();
    await drip(dripping, 60_000, 10);
    expect(dripping.hasEnded(), "no read waits").toBe(false);
    expect(memory.tryAcquire({ version: "w", bytes: 60 })).toBeDefined();
    expect([dripping.hasEnded(), memory.expired]).toEqual([true, 1]);
  });

  test("keeps the lease of a client that takes 64 KiB a second, and of one whose sources are slow", async () => {
    const memory = new MemoryBudget(clock, 100);
    const steady = memory.tryAcquire({ version: "v", bytes: 30 })!;
    await drip(steady, 65_536, 60);
    const waiting = memory.tryAcquire({ version: "w", bytes: 30 })!;
    for (let second = 0; second < 60; second++) {
      await clock.advance(1_000);
      steady.took(65_536);
      waiting.progress();
    }
    waiting.took(1);
    expect(memory.tryAcquire({ version: "x", bytes: 60 })).toBeUndefined();
    expect([steady.hasEnded(), waiting.hasEnded()]).toEqual([false, false]);
  });

  test("keeps a client that was slow once and is not any more", async () => {
    const memory = new MemoryBudget(clock, 100);
    const lease = memory.tryAcquire({ version: "v", bytes: 60 })!;
    await drip(lease, 1_000, 10);
    await drip(lease, 100_000, 10);
    expect(memory.tryAcquire({ version: "w", bytes: 60 })).toBeUndefined();
  });

  test("gives a slow client one unit, and all units again once it takes bytes", async () => {
    const memory = new MemoryBudget(clock, 100);
    const lease = memory.tryAcquire({ version: "v", bytes: 20 })!;
    expect(lease.units()).toBe(5);
    await clock.advance(5_000);
    expect(lease.units()).toBe(1);
    lease.progress();
    expect(lease.units()).toBe(5);
  });

  test("leaves half of the memory to others, however many reads one address opens", () => {
    const memory = new MemoryBudget(clock, 100);
    const client = "203.0.113.7";
    const own = Array.from({ length: 10 }, (_, i) => memory.tryAcquire({ version: `v${i}`, bytes: 10, client }));
    expect(own.filter(Boolean)).toHaveLength(5);
    expect(memory.tryAcquire({ version: "w", bytes: 50, client: "203.0.113.8" })).toBeDefined();
    own[0]!.release();
    expect(memory.tryAcquire({ version: "x", bytes: 10, client })).toBeDefined();
  });

  test("never grants more in sum than there is, whatever comes and goes", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constant("leave" as const))), (steps) => {
        const memory = new MemoryBudget(clock, 100);
        const held: { bytes: number; lease: MemoryLease }[] = [];
        for (const [i, step] of steps.entries()) {
          if (step === "leave") held.shift()?.lease.release();
          else {
            const lease = memory.tryAcquire({ version: `v${i}`, bytes: step });
            if (lease) held.push({ bytes: step, lease });
          }
          const granted = held.reduce((sum, { bytes, lease }) => sum + bytes * lease.units(), 0);
          expect(granted).toBeLessThanOrEqual(100);
        }
      }),
    );
  });
});
