/**
 * `hls.js`, as it is, plays a film in pieces under the service worker: in a file each, and as ranges of one file. The
 * nearest region and the nearest PoP die in the middle.
 */
import { filmPieces, PIECE_SECONDS } from "./make-pieces.ts";
import type * as hls from "hls.js";
import { NEAR } from "../cases/faults.ts";
import { nearestPop, openControlledApp } from "../fixtures/app.ts";
import { addLibrary } from "../fixtures/library.ts";
import { expect, test } from "../fixtures/test.ts";

const SECONDS = 16;

/** The library, in the page. */
declare const library: typeof hls;

for (const pieces of ["files", "ranges"] as const) {
  test(`hls.js plays on from ${pieces} while a region and a PoP die`, async ({ context, world }) => {
    const film = await filmPieces({ key: `hls/${pieces}/main.m3u8`, end: SECONDS, asRanges: pieces === "ranges" });
    for (const [key, bytes] of film) await world.put(key, bytes);
    const page = await openControlledApp(context, world);
    await addLibrary(page, 'export * from "hls.js"; export { default } from "hls.js";');
    test.skip(!(await page.evaluate(() => library.default.isSupported())), "this Chromium is built without H.264");

    const playUntil = (seconds: number): Promise<void> =>
      page.evaluate(async (until) => {
        const video = document.querySelector("video")!;
        await video.play();
        while (video.currentTime < until)
          await new Promise((resolve) => video.addEventListener("timeupdate", resolve, { once: true }));
        video.pause();
      }, seconds);
    await page.evaluate(async (url) => {
      const video = document.createElement("video");
      video.muted = true;
      document.body.append(video);
      // Two pieces ahead: the rest of the film is not there yet when the region dies.
      const player = new library.default({ maxBufferLength: 4, maxMaxBufferLength: 4 });
      const seen = { pieces: [] as number[], problems: [] as string[] };
      Object.assign(globalThis, { seen });
      player.on(library.Events.FRAG_BUFFERED, (_, { frag }) => void seen.pieces.push(Number(frag.sn)));
      player.on(library.Events.ERROR, (_, { details }) => {
        // A seek aborts what loads.
        if (details !== library.ErrorDetails.INTERNAL_ABORTED) seen.problems.push(details);
      });
      player.loadSource(url);
      player.attachMedia(video);
    }, `/ec/hls/${pieces}/main.m3u8`);
    await playUntil(0.2);
    const pop = world.pop(await nearestPop(page, world));
    await world.region(NEAR).down();
    await pop.down();
    await page.evaluate((seconds) => {
      document.querySelector("video")!.currentTime = seconds;
    }, SECONDS - 3);
    await playUntil(SECONDS - 2.8);

    const { seen, frames } = await page.evaluate(() => ({
      ...(globalThis as never as { seen: { pieces: number[]; problems: string[] } }),
      frames: document.querySelector("video")!.getVideoPlaybackQuality().totalVideoFrames,
    }));
    expect(frames).toBeGreaterThan(0);
    expect(seen.pieces).toEqual(expect.arrayContaining([0, (SECONDS - 4) / PIECE_SECONDS]));
    expect(seen.problems, "the player has noticed nothing").toEqual([]);
    expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
    expect(await pop.fired()).toBeGreaterThan(0);
  });
}
