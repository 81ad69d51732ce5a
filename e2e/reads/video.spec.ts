import { fileURLToPath } from "node:url";
import { mediaCases } from "../cases/media.ts";
import { openControlledApp } from "../fixtures/app.ts";
import { runInChromium } from "../fixtures/chromium.ts";
import { expect, test } from "../fixtures/test.ts";

const VIDEO = fileURLToPath(import.meta.resolve("@agarose/demo/samples/walk.mp4"));

runInChromium(mediaCases);

test("a video seeks by Range, reading only what it plays", async ({ context, world }) => {
  await world.put("walk.mp4", VIDEO);
  const page = await openControlledApp(context, world);
  const playable = await page.evaluate(() =>
    document.createElement("video").canPlayType('video/mp4; codecs="avc1.42E01E"'),
  );
  test.skip(playable === "", "this Chromium is built without H.264");
  const ranges = await collectRanges(page);

  const duration = await page.evaluate(async () => {
    const video = document.createElement("video");
    video.muted = true;
    video.src = "/ec/walk.mp4";
    document.body.append(video);
    await new Promise((resolve, reject) => {
      video.addEventListener("loadedmetadata", resolve);
      video.addEventListener("error", () => reject(new Error(video.error?.message)));
    });
    return video.duration;
  });
  const target = Math.floor(duration * 0.8);
  const { at, frames } = await page.evaluate(async (seconds) => {
    const video = document.querySelector("video")!;
    const seeked = new Promise((resolve) => video.addEventListener("seeked", resolve, { once: true }));
    video.currentTime = seconds;
    await seeked;
    await video.play();
    // However long it takes to load: until a frame after the target is on the screen.
    while (video.currentTime <= seconds || video.getVideoPlaybackQuality().totalVideoFrames === 0)
      await new Promise((resolve) => video.addEventListener("timeupdate", resolve, { once: true }));
    video.pause();
    return { at: video.currentTime, frames: video.getVideoPlaybackQuality().totalVideoFrames };
  }, target);

  expect(at).toBeGreaterThan(target);
  expect(frames).toBeGreaterThan(0);
  const starts = (await ranges()).map((range) => Number(/^bytes=(\d+)-/.exec(range)?.[1]));
  expect(Math.max(...starts), "a request that starts well inside the file").toBeGreaterThan(1_000_000);
});

/** The `Range` headers of the reads that the service worker answers from now on. */
async function collectRanges(page: import("@playwright/test").Page): Promise<() => Promise<string[]>> {
  await page.evaluate(() => {
    const ranges: string[] = [];
    Object.assign(globalThis, { ranges });
    new BroadcastChannel("agarose").addEventListener("message", ({ data }) => {
      for (const { type, range } of data) if (type === "read-start" && range) ranges.push(range);
    });
  });
  return () => page.evaluate(() => (globalThis as unknown as { ranges: string[] }).ranges);
}
