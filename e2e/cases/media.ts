/** Media elements, whose ranges are the browser's own. */
import { expect } from "@playwright/test";
import { film } from "../fixtures/webm.ts";
import type { BrowserCase } from "./case.ts";

const SAMPLES_PER_SECOND = 44_100;
const SECONDS = 300;

export const mediaCases: readonly BrowserCase[] = [
  mediaCase("audio", "tone.wav", tone),
  // H.264 is missing in many builds; VP8 is in all of them.
  mediaCase("video", "noise.webm", () => film(SECONDS)),
];

function mediaCase(tag: "audio" | "video", name: string, content: () => Uint8Array): BrowserCase {
  return {
    name: `${tag === "audio" ? "an audio" : "a video"} element seeks by Range`,
    isFurther: tag === "audio",
    async run({ folder, openControlledApp, world }) {
      const bytes = content();
      await world.put(`${folder}media/${name}`, bytes);
      const page = await openControlledApp();
      const far = bytes.length / 2;
      const seen = await page.evaluate(seekIn, { tag, url: `/ec/${folder}media/${name}`, far });
      expect(seen.duration).toBeCloseTo(SECONDS, 1);
      expect(seen.at).toBeCloseTo(0.8 * SECONDS, 1);
      expect(Math.max(...seen.starts), "a request that starts well inside the file").toBeGreaterThan(far);
    },
  };
}

interface Seek {
  readonly tag: "audio" | "video";
  readonly url: string;
  /** Where a range begins that the seek has asked for. */
  readonly far: number;
}

/** Runs in the page. */
async function seekIn({ tag, url, far }: Seek) {
  const starts: number[] = [];
  new BroadcastChannel("agarose").addEventListener("message", ({ data }) => {
    for (const { type, range } of data) {
      if (type === "read-start" && range) starts.push(Number(/^bytes=(\d+)-/.exec(range)?.[1]));
    }
  });
  const media = document.createElement(tag);
  const happened = (event: string): Promise<unknown> =>
    new Promise((resolve, reject) => {
      media.addEventListener(event, resolve, { once: true });
      media.addEventListener("error", () => reject(new Error(media.error?.message)), { once: true });
    });
  media.preload = "metadata";
  media.src = url;
  await happened("loadedmetadata");
  const { duration } = media;
  const seeked = happened("seeked");
  media.currentTime = 0.8 * duration;
  await seeked;
  // The worker reports in arrays, which may come after the bytes.
  for (let waits = 0; waits < 100 && !starts.some((start) => start > far); waits++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return { duration, at: media.currentTime, starts };
}

/** A WAVE file of 16-bit mono PCM, which every browser plays: 26 MB of a sawtooth. */
function tone(): Uint8Array {
  const dataBytes = 2 * SAMPLES_PER_SECOND * SECONDS;
  const file = new Uint8Array(44 + dataBytes);
  const view = new DataView(file.buffer);
  const text = (at: number, word: string): void => void new TextEncoder().encodeInto(word, file.subarray(at));
  text(0, "RIFF");
  view.setUint32(4, 36 + dataBytes, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, SAMPLES_PER_SECOND, true);
  view.setUint32(28, 2 * SAMPLES_PER_SECOND, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, dataBytes, true);
  for (let at = 44; at < file.length; at += 2) view.setInt16(at, (at % 200) * 50, true);
  return file;
}
