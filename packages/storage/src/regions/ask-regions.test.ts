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
  return askRegions(STORES, action, { enough: 2, isAnswered, tries: true }, { clock: systemClock, signal, breaker });
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

/** Answers of tokyo, and then none to one request. */
async function fallSilent(): Promise<void> {
  await Promise.all([...Array.from({ length: 30 }, () => ask(10)), vi.advanceTimersByTimeAsync(20)]);
  const hung = ask(60_000);
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(failed(await hung)).toEqual(["tokyo"]);
  expect(breaker.isOpen("tokyo")).toBe(true);
}

test("a region that falls silent is not waited for during half a minute, but for short tries", async () => {
  await fallSilent();
  for (const ms of [110, 10, 10]) {
    const start = performance.now();
    const asked = ask(60_000).then((outcomes) => [failed(outcomes), performance.now() - start]);
    await vi.advanceTimersByTimeAsync(200);
    expect(await asked).toEqual([["tokyo"], ms]);
  }
  await vi.advanceTimersByTimeAsync(30_000);
  expect(breaker.isOpen("tokyo")).toBe(false);
});

test("a region that was silent and works again gets the next request, and is waited for from then on", async () => {
  await fallSilent();
  expect(failed((await Promise.all([ask(5), vi.advanceTimersByTimeAsync(20)]))[0])).toEqual([]);
  expect(breaker.isOpen("tokyo")).toBe(false);
  expect(failed((await Promise.all([ask(200), vi.advanceTimersByTimeAsync(300)]))[0])).toEqual([]);
});

test("a region that asks for fewer requests gets none", async () => {
  for (let times = 0; times < 3; times++) breaker.refused("tokyo");
  expect(breaker.isOpen("tokyo")).toBe(true);
  let asked = 0;
  const action = async ({ region }: Store): Promise<void> => void (asked += Number(region.name === "tokyo"));
  const { signal } = new AbortController();
  const outcomes = await askRegions(STORES, action, { enough: 2 }, { clock: systemClock, signal, breaker });
  expect([failed(outcomes), asked]).toEqual([["tokyo"], 0]);
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
