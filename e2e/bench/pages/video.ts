/**
 * docs/explanation/performance.md: the `<video>` element, whose requests are the browser's own, beside one copy. It
 * starts, seeks, and plays while a region dies.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describeMachine } from "@agarose/dev-world/machine";
import { summarize, table } from "@agarose/dev-world/statistics";
import type { Bench, BenchOptions } from "../bench.ts";
import type { AppPage } from "../../fixtures/app-page.ts";
import { requestsDuring } from "../../fixtures/requests-during.ts";
import { film } from "../../fixtures/webm.ts";
import { chromiumVersion } from "../lib/browser.ts";
import { besideMegabytes, besideMs, inContest, valuesOf, type Contest } from "./contest.ts";

/** Megabits per second of the line; 0 is unlimited. */
const LINES_MBIT = [20, 50, 100, 0];
/** Of the film that seeks: 31 MB of 10 Mbit/s. */
const SEEN = { seconds: 25, megabytes: 31 };
/** Where it seeks to, in shares of its length, and how long it stays there. */
const SEEKS = [0.5, 0.1, 0.8, 0.3, 0.65];
const STAY_MS = 500;
/** Lines of the film that plays, which needs this share of their rate. */
const PLAY_LINES_MBIT = [20, 50];
const PLAY_SHARE = 0.8;
const PLAY_SECONDS = 20;
/** When the region dies. */
const DIES_MS = 5_000;
/** A browser on two cores decodes them in time. */
const FRAMES = 10;
/** Each reads films of its own, because Chromium keeps what it has of one. */
const ROUNDS = 3;

export const video: Bench = {
  name: "video",
  page: "explanation/performance.md",
  title: "Video",
  async run(options) {
    const rounds = options.quick ? 1 : ROUNDS;
    const seeks: string[][] = [];
    const plays: string[][] = [];
    await inContest({ code: "auto" }, async (contest) => {
      await contest.put(films(rounds), contest.regions.slice(0, 1));
      for (const mbit of LINES_MBIT) seeks.push(await watch(contest, mbit, rounds, options));
      for (const mbit of PLAY_LINES_MBIT) plays.push(await play(contest, mbit, rounds, options));
    });
    return [
      `Medians of ${rounds} rounds in the same world, beside one copy. A \`<video>\` element opens a WebM film of`,
      `${SEEN.megabytes} MB and 10 Mbit/s, which no cache has, seeks to ${SEEKS.length} places, and stays at each for`,
      `${STAY_MS} ms. Which ranges it requests, and when it leaves them, is up to Chromium.`,
      "",
      table(["line", "until it can play", "a seek", "bytes"], seeks),
      "",
      `Playing a film of ${PLAY_SHARE * 100}% of the line's rate for ${PLAY_SECONDS} s: the milliseconds for which it stood still, in all ${rounds} rounds. The`,
      `nearest region dies ${DIES_MS / 1000} s after the start, or nothing fails.`,
      "",
      table(["line", "Agarose", "Agarose, a region dies", "one copy"], plays),
      "",
      describeMachine(await chromiumVersion()),
    ].join("\n");
  },
};

/** All films, by their keys. */
function films(rounds: number): ReadonlyMap<string, Uint8Array> {
  const all = new Map<string, Uint8Array>();
  const seen = film(SEEN.seconds, FRAMES, (1e6 * SEEN.megabytes) / SEEN.seconds);
  for (const mbit of LINES_MBIT) for (let round = 0; round < rounds; round++) all.set(seenKey(mbit, round), seen);
  for (const mbit of PLAY_LINES_MBIT) {
    const played = film(PLAY_SECONDS, FRAMES, (PLAY_SHARE * mbit * 1e6) / 8);
    for (let round = 0; round < 2 * rounds; round++) all.set(playedKey(mbit, round), played);
  }
  return all;
}

/** The row of a line: milliseconds of the start and of a seek, and the bytes. */
async function watch(contest: Contest, mbit: number, rounds: number, { progress }: BenchOptions): Promise<string[]> {
  const line = await contest.throttle(mbit);
  const copies = contest.copies.slice(0, 1);
  const taken = await contest.takeTurns(rounds, [copies], async (page, [base], round) => {
    let ms: readonly number[] = [];
    const megabytes = await contest.megabytesDuring(async () => {
      ms = await watchMs(page, `${base}${seenKey(mbit, round)}`);
      await sleep(STAY_MS);
    });
    return { startMs: ms[0]!, seekMs: summarize(ms.slice(1)).median, megabytes };
  });
  const cells = [
    besideMs(...valuesOf(taken, "startMs")),
    besideMs(...valuesOf(taken, "seekMs")),
    besideMegabytes(...valuesOf(taken, "megabytes")),
  ];
  progress(`${line}: ${cells.join(", ")}`);
  return [line, ...cells];
}

/** The row of a line: for how long films of Agarose, healthy and while a region dies, and of one copy stood still. */
async function play(contest: Contest, mbit: number, rounds: number, { progress }: BenchOptions): Promise<string[]> {
  const line = await contest.throttle(mbit);
  const { ours, plain, world } = contest;
  const copy = contest.copies[0]!;
  const nearest = world.region(contest.regions[0]);
  const stood = [0, 0, 0];
  for (let round = 0; round < rounds; round++) {
    stood[0]! += await stallMs(ours, `/ec/${playedKey(mbit, 2 * round)}`);
    stood[2]! += await stallMs(plain, copy + playedKey(mbit, 2 * round));
    const log = await requestsDuring(world, async () => {
      const dying = stallMs(ours, `/ec/${playedKey(mbit, 2 * round + 1)}`);
      await sleep(DIES_MS);
      await nearest.down();
      stood[1]! += await dying;
      await nearest.up();
    });
    const isRefused = log.some(({ from, outcome }) => from === "client" && outcome === "down");
    if (!isRefused) throw new Error(`${mbit} Mbit/s: no request met the region that was down`);
  }
  const cells = stood.map((ms) => ms.toFixed(0));
  progress(`${line}, playing: ${cells.join(", ")}`);
  return [line, ...cells];
}

function seenKey(mbit: number, round: number): string {
  return `seen-${mbit}-${round}.webm`;
}

function playedKey(mbit: number, round: number): string {
  return `played-${mbit}-${round}.webm`;
}

/** Milliseconds until the film can play, and of each seek. */
function watchMs(page: AppPage, url: string): Promise<number[]> {
  return page.evaluate(
    async ([src, shares, stayMs]) => {
      const element = document.createElement("video");
      const timed = (event: string): Promise<number> => {
        const startMs = performance.now();
        return new Promise((resolve, reject) => {
          element.addEventListener(event, () => resolve(performance.now() - startMs), { once: true });
          element.addEventListener("error", () => reject(new Error(element.error?.message)), { once: true });
        });
      };
      const started = timed("canplay");
      Object.assign(element, { muted: true, preload: "auto", src });
      document.body.append(element);
      const taken = [await started];
      for (const share of shares) {
        const seeked = timed("seeked");
        element.currentTime = share * element.duration;
        taken.push(await seeked);
        await new Promise((resolve) => setTimeout(resolve, stayMs));
      }
      element.src = "";
      element.remove();
      return taken;
    },
    [url, SEEKS, STAY_MS] as const,
  );
}

/** Plays the film to its end, and returns the milliseconds for which it stood still after its start. */
function stallMs(page: AppPage, src: string): Promise<number> {
  return page.evaluate(async (url) => {
    const element = document.createElement("video");
    Object.assign(element, { muted: true, preload: "auto", src: url });
    document.body.append(element);
    await element.play();
    let stoodMs = 0;
    let sinceMs: number | undefined;
    element.addEventListener("waiting", () => (sinceMs = performance.now()));
    element.addEventListener("playing", () => {
      if (sinceMs !== undefined) stoodMs += performance.now() - sinceMs;
      sinceMs = undefined;
    });
    await new Promise((resolve, reject) => {
      element.addEventListener("ended", resolve);
      element.addEventListener("error", () => reject(new Error(element.error?.message)));
    });
    element.src = "";
    element.remove();
    return stoodMs;
  }, src);
}
