import { fileURLToPath } from "node:url";
import { NEAR } from "../cases/faults.ts";
import { nearestPop, openControlledApp, read, sha256 } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";
import { film } from "../fixtures/webm.ts";

const VIDEO = fileURLToPath(import.meta.resolve("@agarose/demo/samples/walk.mp4"));

test("a video that seeks again and again gives up reads, and none of them is a defect", async ({ context, world }) => {
  await world.put("walk.mp4", VIDEO);
  await world.client.throttle(20);
  const page = await openControlledApp(context, world);
  const ends = await page.evaluate(async () => {
    const codes: Record<string, number> = {};
    new BroadcastChannel("agarose").addEventListener("message", ({ data }) => {
      for (const { type, error } of data) if (type === "read-end") codes[error] = (codes[error] ?? 0) + 1;
    });
    const video = document.createElement("video");
    if (video.canPlayType('video/mp4; codecs="avc1.42E01E"') === "") return undefined;
    video.muted = true;
    video.preload = "auto";
    video.src = "/ec/walk.mp4";
    document.body.append(video);
    await new Promise((resolve) => video.addEventListener("canplay", resolve, { once: true }));
    for (let seek = 0; seek < 12; seek++) {
      const seeked = new Promise((resolve) => video.addEventListener("seeked", resolve, { once: true }));
      video.currentTime = ((seek * 7) % 12) * (video.duration / 13);
      await seeked;
    }
    video.src = "";
    await new Promise((resolve) => setTimeout(resolve, 1000));
    return codes;
  });
  await world.client.throttle(0);
  test.skip(ends === undefined, "this Chromium is built without H.264");
  expect(ends!["ABORTED"], "reads that were given up").toBeGreaterThan(0);
  expect(Object.keys(ends!).filter((code) => code !== "ABORTED" && code !== "undefined")).toEqual([]);
});

test("a video plays on and seeks while the nearest region and the nearest PoP are down", async ({ context, world }) => {
  const seconds = 60;
  // 30 MB: the browser holds a part of the film only when they die.
  const content = film(seconds, 10, 500_000);
  await world.put("film.webm", content);
  const page = await openControlledApp(context, world);
  const playFrom = (from: number): Promise<{ duration: number; at: number; newFrames: number }> =>
    page.evaluate(async (start) => {
      const video = document.querySelector("video") ?? document.createElement("video");
      if (!video.isConnected) {
        video.muted = true;
        video.src = "/ec/film.webm";
        document.body.append(video);
      }
      const { totalVideoFrames: before } = video.getVideoPlaybackQuality();
      video.currentTime = start;
      await video.play();
      while (video.currentTime < start + 1) {
        if (video.error) throw new Error(video.error.message);
        await new Promise((resolve) => video.addEventListener("timeupdate", resolve, { once: true }));
      }
      video.pause();
      const newFrames = video.getVideoPlaybackQuality().totalVideoFrames - before;
      return { duration: video.duration, at: video.currentTime, newFrames };
    }, from);
  expect((await playFrom(0)).newFrames).toBeGreaterThan(0);
  const pop = world.pop(await nearestPop(page, world));
  await world.region(NEAR).down();
  await pop.down();
  for (const from of [45, 20, 58]) {
    const { duration, at, newFrames } = await playFrom(from);
    expect(duration).toBe(seconds);
    expect(at).toBeGreaterThanOrEqual(from + 1);
    expect(at).toBeLessThan(from + 2.1);
    expect(newFrames).toBeGreaterThan(0);
  }
  expect(await read(page, "film.webm")).toMatchObject({ status: 200, sha256: sha256(content) });
  expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
  expect(await pop.fired()).toBeGreaterThan(0);
});
