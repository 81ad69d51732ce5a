/** Media elements, whose ranges are the browser's own. */
import { expect } from "@playwright/test";
import type { BrowserCase } from "./case.ts";

const SAMPLES_PER_SECOND = 44_100;
const SECONDS = 300;

export const mediaCases: readonly BrowserCase[] = [
  {
    name: "an audio element seeks by Range",
    async run({ folder, openControlledApp, put }) {
      await put(`${folder}media/tone.wav`, tone());
      const page = await openControlledApp();
      const seen = await page.evaluate(async (url) => {
        const ranges: string[] = [];
        new BroadcastChannel("agarose").addEventListener("message", ({ data }) => {
          if (data.type === "read-start" && data.range) ranges.push(data.range);
        });
        const audio = document.createElement("audio");
        const happened = (name: string): Promise<unknown> =>
          new Promise((resolve, reject) => {
            audio.addEventListener(name, resolve, { once: true });
            audio.addEventListener("error", () => reject(new Error(audio.error?.message)), { once: true });
          });
        audio.preload = "metadata";
        audio.src = url;
        await happened("loadedmetadata");
        const { duration } = audio;
        const seeked = happened("seeked");
        audio.currentTime = 0.8 * duration;
        await seeked;
        return { duration, at: audio.currentTime, ranges };
      }, `/ec/${folder}media/tone.wav`);

      expect(seen.duration).toBeCloseTo(SECONDS, 1);
      expect(seen.at).toBeCloseTo(0.8 * SECONDS, 1);
      const starts = seen.ranges.map((range) => Number(/^bytes=(\d+)-/.exec(range)?.[1]));
      expect(Math.max(...starts), "a request that starts well inside the file").toBeGreaterThan(
        SECONDS * SAMPLES_PER_SECOND,
      );
    },
  },
];

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
