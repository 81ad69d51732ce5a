/** Turns at one source: who has had the fewest is next. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { FairQueue, REQUESTS_PER_SOURCE, Slot, ROUND_REQUESTS } from "./fair-queue.ts";
import { VirtualClock } from "../../../test/virtual-clock.ts";

const never = new AbortController().signal;

/** A queue in which all places are taken, and what frees them one by one. */
function fullQueue(): { queue: FairQueue; free: () => void } {
  const queue = new FairQueue();
  const ends: (() => void)[] = [];
  for (let i = 0; i < REQUESTS_PER_SOURCE; i++)
    void queue.run(() => new Promise<void>((resolve) => ends.push(resolve)), never, new Slot(null));
  return { queue, free: () => ends.shift()!() };
}

test.each([
  [null, "auto"],
  ["", "auto"],
  ["u=3, i", "auto"],
  ["u=1", "high"],
  ["i, u=5", "low"],
  ["nu=1", "auto"],
  ["u=9", "auto"],
])("the header %j means %s", (header, priority) => {
  expect(new Slot(header).priority).toBe(priority);
});

test("a read that asks once is not behind the hundred requests of another", async () => {
  const { queue, free } = fullQueue();
  const [long, short] = [new Slot(null), new Slot(null)];
  const order: string[] = [];
  const ask = (name: string, slot: Slot): Promise<void> => queue.run(async () => void order.push(name), never, slot);
  const all = [...Array.from({ length: 100 }, () => ask("long", long)), ask("short", short)];
  free();
  await Promise.all(all);
  expect(order.indexOf("short")).toBeLessThanOrEqual(ROUND_REQUESTS);
});

test("small reads are complete one after the other, in the order in which they were asked for", async () => {
  const { queue, free } = fullQueue();
  const order: number[] = [];
  const all = Array.from({ length: 20 }, (_, read) => {
    const slot = new Slot(null);
    return Array.from({ length: 10 }, () => queue.run(async () => void order.push(read), never, slot));
  });
  free();
  await Promise.all(all.flat());
  expect(order).toEqual(order.toSorted((a, b) => a - b));
});

test("urgent reads come first, unhurried ones last, and neither is left out", async () => {
  const { queue, free } = fullQueue();
  const order: string[] = [];
  const all = ["u=5", null, "u=1"].flatMap((header) => {
    const slot = new Slot(header);
    const { priority } = slot;
    return Array.from({ length: 40 }, () => queue.run(async () => void order.push(priority), never, slot));
  });
  free();
  await Promise.all(all);
  expect(order.slice(0, 15)).toEqual(Array(15).fill("high"));
  expect(order.indexOf("low")).toBeLessThan(order.lastIndexOf("high"));
  expect(order.filter((name) => name === "low")).toHaveLength(40);
});

test("a long read progresses beside an endless stream of small ones", async () => {
  const { queue, free } = fullQueue();
  const long = new Slot("u=5");
  for (let i = 0; i < 2 * ROUND_REQUESTS; i++) long.served++;
  let small = 0;
  let isOver = false;
  const next = async (): Promise<void> => {
    await queue.run(async () => void small++, never, new Slot(null));
    if (!isOver && small < 1_000) await next();
  };
  const endless = [next(), next()];
  const all = Array.from({ length: 10 }, () => queue.run(async () => {}, never, long));
  free();
  await Promise.all(all);
  isOver = true;
  await Promise.all(endless);
  expect(small).toBeLessThanOrEqual(12 * ROUND_REQUESTS);
});

test("one that gives up before its place comes leaves the queue, and its work does not start", async () => {
  const { queue, free } = fullQueue();
  const abort = new AbortController();
  let begun = false;
  const waiting = queue.run(async () => void (begun = true), abort.signal, new Slot(null));
  const load = queue.load;
  abort.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  free();
  expect([begun, load - queue.load]).toEqual([false, 1]);
});

test("whatever fails or gives up, no more than its bound run at a time and every place comes back", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ ms: fc.nat(50), slot: fc.nat(4), end: fc.constantFrom("ok", "fails", "aborts") }), {
        maxLength: 120,
      }),
      async (requests) => {
        const clock = new VirtualClock();
        const queue = new FairQueue();
        const slots = Array.from({ length: 5 }, () => new Slot(null));
        let [running, most] = [0, 0];
        const all = requests.map(({ ms, slot, end }) => {
          const abort = new AbortController();
          if (end === "aborts") clock.after(ms / 2, () => abort.abort(new Error("enough")));
          const work = async (): Promise<void> => {
            most = Math.max(most, ++running);
            await clock.sleep(ms, abort.signal).finally(() => running--);
            if (end === "fails") throw new Error("failed");
          };
          return queue.run(work, abort.signal, slots[slot]!);
        });
        await clock.settle(Promise.allSettled(all));
        expect(most).toBeLessThanOrEqual(REQUESTS_PER_SOURCE);
        expect([running, queue.load]).toEqual([0, 0]);
      },
    ),
    { numRuns: 30 },
  );
});
