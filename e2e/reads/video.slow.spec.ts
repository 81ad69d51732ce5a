import { fileURLToPath } from "node:url";
import { openControlledApp } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";

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
