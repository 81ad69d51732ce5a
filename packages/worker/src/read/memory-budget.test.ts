import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { SimulatedClock } from "@agarose/core/testing";
import { MemoryBudget, type MemoryLease } from "./memory-budget.ts";

const NEVER = new AbortController().signal;
let clock: SimulatedClock;
beforeEach(() => {
  clock = new SimulatedClock();
});

describe("the memory of reads", () => {
  test("gives a lone read all there is, and one unit at least however large it is", () => {
    const memory = new MemoryBudget(clock, 100);
    const share = memory.tryAcquire("v1", 30)!;
    expect(share.units()).toBe(3);
    share.release();
    expect(memory.tryAcquire("v2", 1000)!.units()).toBe(1);
  });

  test("shrinks what reads may hold as others come, and lets it grow when they leave", () => {
    const memory = new MemoryBudget(clock, 100);
    const first = memory.tryAcquire("v3", 20)!;
    const second = memory.tryAcquire("v4", 20)!;
    expect([first.units(), second.units()]).toEqual([2, 2]);
    second.release();
    second.release();
    expect(memory.reads, "a share is given back once").toBe(1);
    expect(first.units()).toBe(5);
  });

  test("counts further reads of one object for less, because they hold the same stripes", () => {
    const memory = new MemoryBudget(clock, 100);
    const shares = Array.from({ length: 5 }, () => memory.tryAcquire("same", 50));
    expect(shares.map((share) => share !== undefined)).toEqual([true, true, true, true, true]);
    expect(memory.tryAcquire("same", 50), "50 + 4 x 12.5 are all there is").toBeUndefined();
    for (const share of shares) share!.release();
    expect(memory.tryAcquire("same", 50)!.units(), "the first of them again").toBe(2);
  });

  test("refuses a read that does not fit, and lets it wait until another has ended", async () => {
    const memory = new MemoryBudget(clock, 100);
    const first = memory.tryAcquire("v5", 60)!;
    expect(memory.tryAcquire("v6", 60)).toBeUndefined();
    clock.after(1_000, () => first.release());
    await clock.run(memory.acquire("v7", 60, NEVER));
    expect(memory.reads).toBe(1);
    expect(clock.now()).toBeLessThan(1_100);
  });

  test("ends a wait with BUSY and both numbers", async () => {
    const memory = new MemoryBudget(clock, 100);
    memory.tryAcquire("v8", 60);
    const waiting = clock.run(memory.acquire("v9", 60, NEVER));
    await expect(waiting).rejects.toMatchObject({ code: "BUSY", details: { reads: 1, bytesMax: 100 } });
    expect(memory.reads).toBe(1);
  });

  test("ends a wait whose client has gone", async () => {
    const memory = new MemoryBudget(clock, 100);
    memory.tryAcquire("v10", 60);
    const gone = new AbortController();
    clock.after(100, () => gone.abort());
    await expect(clock.run(memory.acquire("v11", 60, gone.signal))).rejects.toThrow(/abort/);
    expect(clock.now()).toBeLessThan(200);
  });

  test("never grants more in sum than there is, whatever comes and goes", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constant("leave" as const))), (steps) => {
        const memory = new MemoryBudget(clock, 100);
        const held: { bytes: number; share: MemoryLease }[] = [];
        for (const [i, step] of steps.entries()) {
          if (step === "leave") held.shift()?.share.release();
          else {
            const share = memory.tryAcquire(`v${i}`, step);
            if (share) held.push({ bytes: step, share });
          }
          const granted = held.reduce((sum, { bytes, share }) => sum + bytes * share.units(), 0);
          expect(granted).toBeLessThanOrEqual(100);
        }
      }),
    );
  });
});
