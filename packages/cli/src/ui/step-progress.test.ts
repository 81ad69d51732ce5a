import { expect, test } from "vitest";
import { formatDuration, withProgress } from "./step-progress.ts";

/** Plays work of `totalMs` in 100 steps, and returns the lines with the time of each in seconds. */
async function linesOf(totalMs: number): Promise<[number, string][]> {
  let nowMs = 0;
  const lines: [number, string][] = [];
  const log = (line: string): number => lines.push([nowMs / 1000, line]);
  const play = (show: (step: string, done: number) => void): void => {
    for (let step = 0; step <= 100; step++, nowMs += totalMs / 100) show("playing", step / 100);
  };
  await withProgress(play, { now: () => nowMs, log, hint: "take less", isTerminal: false });
  return lines;
}

test("long work is announced with an estimate, then shows the time left", async () => {
  const lines = await linesOf(100_000);
  expect(lines.slice(0, 3)).toEqual([
    [2, "this takes about 1 min 40 s or more: take less"],
    [17, "playing: 17% of all, about 1 min 23 s left"],
    [32, "playing: 32% of all, about 1 min 8 s left"],
  ]);
  expect(lines).toHaveLength(7);
});

test("short work prints nothing", async () => {
  expect(await linesOf(20_000)).toEqual([]);
});

test.each([
  [400, "1 s"],
  [60_000, "1 min"],
  [519_000, "8 min 39 s"],
  [3_600_000, "60 min"],
])("%i ms is %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
