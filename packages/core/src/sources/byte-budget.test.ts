import { expect, test } from "vitest";
import { ByteBudget } from "./byte-budget.ts";

const { signal } = new AbortController();

/** Whether a promise has settled by now. */
async function hasSettled(promise: Promise<unknown>): Promise<boolean> {
  const settled = promise.then(
    () => true,
    () => true,
  );
  return Promise.race([settled, new Promise<boolean>((resolve) => setTimeout(() => resolve(false)))]);
}

test("those who find no room wait in order, also one who would fit", async () => {
  const budget = new ByteBudget(10);
  const release = await budget.take(8, signal);
  const large = budget.take(8, signal);
  const small = budget.take(1, signal);
  expect(await hasSettled(large)).toBe(false);
  expect(await hasSettled(small)).toBe(false);
  release();
  expect(await hasSettled(large)).toBe(true);
  expect(await hasSettled(small)).toBe(true);
});

test("who gives up waiting holds nobody up, and takes nothing", async () => {
  const budget = new ByteBudget(10);
  const release = await budget.take(8, signal);
  const stop = new AbortController();
  const large = budget.take(10, stop.signal);
  const small = budget.take(2, signal);
  stop.abort(new Error("gone"));
  await expect(large).rejects.toThrow("gone");
  expect(await hasSettled(small)).toBe(true);
  release();
  (await small)();
  expect(await hasSettled(budget.take(10, signal))).toBe(true);
});
