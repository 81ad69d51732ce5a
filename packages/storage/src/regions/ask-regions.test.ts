import { systemClock } from "@agarose/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Store } from "../buckets/store.ts";
import { askRegions, Breaker, type Outcome } from "./ask-regions.ts";

const NAMES = ["dublin", "frankfurt", "tokyo"];
const STORES = NAMES.map((name) => ({ region: { name } }) as Store);
/** Above the grace of a region after quick answers of the others. */
const LONG_MS = 3_000;

let breaker: Breaker;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  breaker = new Breaker(systemClock);
});

afterEach(() => {
  vi.useRealTimers();
});

/** Asks all regions; tokyo takes `tokyoMs`, the others 10 ms. */
function ask(tokyoMs: number, isAnswered = true): Promise<Outcome<void>[]> {
  const action = ({ region }: Store): Promise<void> =>
    new Promise((resolve) => setTimeout(resolve, region.name === "tokyo" ? tokyoMs : 10));
  const { signal } = new AbortController();
  return askRegions(STORES, action, { enough: 2, isAnswered }, { clock: systemClock, signal, breaker });
}

function failed(outcomes: readonly Outcome<void>[]): string[] {
  return outcomes.flatMap(({ store, error }) => (error ? [store.region.name] : []));
}

/** Answers that come every `everyMs`, for as long as a request that hangs. */
async function answerAllTheTime({ isAnswered = true, everyMs = 100 } = {}): Promise<Outcome<void>[]> {
  const answers: Outcome<void>[][] = [];
  for (let ms = 0; ms < LONG_MS; ms += everyMs) answers.push(await ask(everyMs, isAnswered));
  return answers.flat();
}

test("a region that falls silent is left out for half a minute", async () => {
  await Promise.all([...Array.from({ length: 30 }, () => ask(10)), vi.advanceTimersByTimeAsync(20)]);
  const hung = ask(60_000);
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(failed(await hung)).toEqual(["tokyo"]);
  expect(breaker.isOpen("tokyo")).toBe(true);
  const start = performance.now();
  expect(failed((await Promise.all([ask(10), vi.advanceTimersByTimeAsync(20)]))[0])).toEqual(["tokyo"]);
  expect(performance.now() - start).toBe(20);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(breaker.isOpen("tokyo")).toBe(false);
});

test.each([100, 1_000])("one straggler beside an answer each %d ms does not close the region", async (everyMs) => {
  const late = ask(60_000);
  const others = answerAllTheTime({ everyMs });
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(failed(await late)).toEqual(["tokyo"]);
  expect(failed(await others)).toEqual([]);
  expect(breaker.isOpen("tokyo")).toBe(false);
});

test("a region that answers some requests and hangs at more than a tenth is left out", async () => {
  const late = [ask(60_000), ask(60_000), ask(60_000), ask(60_000)];
  const others = answerAllTheTime();
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect((await Promise.all(late)).flatMap(failed)).toHaveLength(4);
  await others;
  expect(breaker.isOpen("tokyo")).toBe(true);
});

test("what was only sent says nothing of a region", async () => {
  const late = ask(60_000);
  const sent = answerAllTheTime({ isAnswered: false });
  await vi.advanceTimersByTimeAsync(LONG_MS);
  await Promise.all([late, sent]);
  expect(breaker.isOpen("tokyo")).toBe(true);
});

test("a region that hung is not counted on until it answers, so that a later probe of it is short", async () => {
  const hung = ask(60_000);
  await vi.advanceTimersByTimeAsync(40_000);
  expect(failed(await hung)).toEqual(["tokyo"]);
  expect(breaker.isOpen("tokyo")).toBe(false);
  expect(breaker.countResponsive(STORES)).toBe(2);
  const start = performance.now();
  const probe = ask(60_000).then(() => performance.now() - start);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await probe).toBeLessThan(LONG_MS);
  await Promise.all([ask(10), vi.advanceTimersByTimeAsync(40_000)]);
  await Promise.all([ask(10), vi.advanceTimersByTimeAsync(20)]);
  expect(breaker.countResponsive(STORES)).toBe(3);
});
