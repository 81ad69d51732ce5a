import { expect, test } from "vitest";
import { formatDuration, startProgress, withProgress, type ProgressReport } from "./progress.ts";

const MIB = 1024 * 1024;

/** Moves a MiB a second, 40 of 100. */
function play(options: { quiet: boolean; onReport?: (report: ProgressReport) => void }): string[] {
  let nowMs = 1_000;
  const lines: string[] = [];
  const progress = startProgress("sync", {
    ...options,
    isTerminal: false,
    now: () => nowMs,
    log: (line) => lines.push(line),
  });
  progress.addTotal(100 * MIB);
  for (let second = 0; second < 40; second++) {
    nowMs += 1_000;
    progress.add(MIB);
  }
  progress.stop();
  return lines;
}

test("off a terminal, a line every 15 seconds has the rate and the time left", () => {
  expect(play({ quiet: false })).toEqual([
    "sync: 15.0 MiB of 100.0 MiB, 1.0 MiB/s, about 1 min 25 s left",
    "sync: 30.0 MiB of 100.0 MiB, 1.0 MiB/s, about 1 min 10 s left",
  ]);
});

test("quiet progress prints nothing", () => {
  expect(play({ quiet: true })).toEqual([]);
});

test("a program gets a report every five seconds, and stderr nothing", () => {
  const reports: ProgressReport[] = [];
  expect(play({ quiet: true, onReport: (report) => reports.push(report) })).toEqual([]);
  expect(reports).toHaveLength(8);
  expect(reports[1]).toEqual({ bytesDone: 10 * MIB, bytesInAll: 100 * MIB, bytesPerSecond: MIB, secondsLeft: 90 });
});

test("bytes beyond what was known leave no negative time", () => {
  const reports: ProgressReport[] = [];
  let nowMs = 0;
  const progress = startProgress("get", { quiet: true, now: () => nowMs, onReport: (report) => reports.push(report) });
  nowMs = 6_000;
  progress.add(MIB);
  expect(reports).toEqual([{ bytesDone: MIB, bytesInAll: 0, bytesPerSecond: Math.round(MIB / 6), secondsLeft: 0 }]);
});

/** Plays work of `totalMs` in 100 steps, and returns the lines with the time of each in seconds. */
async function linesOf(totalMs: number, quiet = false): Promise<[number, string][]> {
  let nowMs = 0;
  const lines: [number, string][] = [];
  const log = (line: string): number => lines.push([nowMs / 1000, line]);
  const work = (show: (step: string, done: number) => void): void => {
    for (let step = 0; step <= 100; step++, nowMs += totalMs / 100) show("playing", step / 100);
  };
  await withProgress(work, { now: () => nowMs, log, hint: "take less", isTerminal: false, quiet });
  return lines;
}

test("long work in steps shows the time left every 15 seconds, and first how to wait less", async () => {
  const lines = await linesOf(100_000);
  expect(lines.slice(0, 2)).toEqual([
    [15, "playing: 15% of all, about 1 min 25 s left (take less)"],
    [30, "playing: 30% of all, about 1 min 10 s left"],
  ]);
  expect(lines).toHaveLength(6);
});

test("short work prints nothing, nor does quiet work", async () => {
  expect([await linesOf(12_000), await linesOf(100_000, true)]).toEqual([[], []]);
});

test.each([
  [400, "1 s"],
  [60_000, "1 min"],
  [519_000, "8 min 39 s"],
  [3_600_000, "60 min"],
])("%i ms is %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
