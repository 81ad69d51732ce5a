import { expect, test } from "vitest";
import { outcomesOf } from "../deployment.ts";

type Context = Pick<AbortController, "signal">;

const { signal } = new AbortController();

test("passes items on one by one, each once its reader wants it, and returns the result", async () => {
  const given: number[] = [];
  const items = outcomesOf<number, string, Context>({ signal }, async (emit) => {
    for (let n = 1; n <= 3; n++) {
      await emit(n);
      given.push(n);
    }
    return "end";
  });
  expect(await items.next()).toEqual({ done: false, value: 1 });
  expect(await items.next()).toEqual({ done: false, value: 2 });
  expect(given).not.toContain(3);
  expect(await items.next()).toEqual({ done: false, value: 3 });
  expect(await items.next()).toEqual({ done: true, value: "end" });
});

test("a failure comes after what was found before it", async () => {
  const items = outcomesOf<number, void, Context>({ signal }, async (emit) => {
    await emit(1);
    throw new Error("no region answers");
  });
  expect(await items.next()).toEqual({ done: false, value: 1 });
  await expect(items.next()).rejects.toThrow("no region answers");
});

test("a reader who leaves ends the walk, and waits for its end", async () => {
  let hasEnded = false;
  const items = outcomesOf<number, void, Context>({ signal }, async (emit, { signal: left }) => {
    try {
      await emit(1);
      await new Promise((_, reject) => left.addEventListener("abort", () => reject(left.reason as Error)));
    } finally {
      hasEnded = true;
    }
  });
  for await (const _ of items) break;
  expect(hasEnded).toBe(true);
});

test("a walk that finds nothing returns its result, and one that fails at once says why", async () => {
  expect(await outcomesOf({ signal }, async () => 7).next()).toEqual({ done: true, value: 7 });
  await expect(outcomesOf({ signal }, () => Promise.reject(new Error("no"))).next()).rejects.toThrow("no");
});
