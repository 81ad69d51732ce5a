import { expect, test } from "vitest";
import { inParallel, Limiter } from "./limiter.ts";

/** Tasks that end by hand. */
function tasks(limiter: Limiter<string>) {
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (name: string, signal?: AbortSignal): Promise<void> =>
    limiter.run(
      () => {
        started.push(name);
        return new Promise((resolve) => ends.set(name, resolve));
      },
      signal,
      name,
    );
  return { started, run, end: (name: string) => ends.get(name)!() };
}

test("tasks beyond the limit start in order, as places become free", async () => {
  const limiter = new Limiter<string>(2);
  const { started, run, end } = tasks(limiter);
  const all = ["a", "b", "c", "d"].map((name) => run(name));
  expect([started, limiter.load]).toEqual([["a", "b"], 4]);
  end("b");
  await all[1];
  // A newcomer does not take the place that has become free.
  all.push(run("e"));
  await Promise.resolve();
  expect([started, limiter.finished]).toEqual([["a", "b", "c"], 1]);
});

test("a task that fails frees its place, and one whose signal aborts leaves the queue", async () => {
  const limiter = new Limiter<string>(1);
  const { started, run } = tasks(limiter);
  const abort = new AbortController();
  const failing = limiter.run(() => Promise.reject(new Error("failed")));
  const leaving = run("leaving", abort.signal);
  const waiting = run("waiting", abort.signal);
  void run("last");
  abort.abort(new Error("enough"));
  await expect(leaving).rejects.toThrow("enough");
  await expect(waiting).rejects.toThrow("enough");
  await expect(run("late", abort.signal)).rejects.toThrow("enough");
  await expect(failing).rejects.toThrow("failed");
  expect([started, limiter.load]).toEqual([["last"], 1]);
});

test("a pool runs each item once, so many at a time, and fails as the first item that does", async () => {
  let [running, most] = [0, 0];
  const seen: number[] = [];
  const items = Array.from({ length: 20 }, (_, i) => i);
  await inParallel(3, items, async (item) => {
    most = Math.max(most, ++running);
    await Promise.resolve();
    seen.push(item);
    running--;
  });
  expect([seen, most]).toEqual([items, 3]);
  await expect(inParallel(3, items, (item) => Promise.reject(new Error(`item ${item}`)))).rejects.toThrow("item 0");
});
