/** `dash.js`, as it is, plays a film whose pieces are ranges of one WebM file. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { unpacked } from "./unpacked.ts";
import { sha256 } from "../fixtures/app.ts";
import { showSame } from "../fixtures/same-app.ts";
import { expect, test } from "../fixtures/test.ts";
import { film } from "../fixtures/webm.ts";

const SECONDS = 60;

/** The little of the library that the test uses: it is not installed. */
declare const dashjs: {
  MediaPlayer: (() => { create(): { initialize(video: HTMLVideoElement, url: string): void; on: Listen } }) & {
    events: Record<"ERROR" | "FRAGMENT_LOADING_COMPLETED", string>;
  };
};
type Listen = (event: string, listener: (event: { type: string }) => void) => void;

/** Which ranges of a film are its head and its index (ISO/IEC 23009-1). */
function manifestOf(bytes: Buffer): string {
  const [cues, clusters] = [bytes.indexOf("1c53bb6b", "hex"), bytes.indexOf("1f43b675", "hex")];
  return `<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" profiles="urn:mpeg:dash:profile:webm-on-demand:2012"
 mediaPresentationDuration="PT${SECONDS}S" minBufferTime="PT1S"><Period><AdaptationSet mimeType="video/webm" codecs="vp8">
<Representation id="1" bandwidth="2400000" width="320" height="240"><BaseURL>film.webm</BaseURL>
<SegmentBase indexRange="${cues}-${clusters - 1}"><Initialization range="0-${cues - 1}"/></SegmentBase>
</Representation></AdaptationSet></Period></MPD>`;
}

test("dash.js plays a film, seeks in it and plays on to its end", async ({ browser, world }) => {
  const { folder, missing } = await unpacked("dashjs", "5.2.1");
  test.skip(missing !== undefined, missing);
  const bytes = Buffer.from(film(SECONDS, 10, 300_000));
  const files = {
    "dash/dash.js": await readFile(join(folder!, "dist/modern/umd/dash.mediaplayer.min.js")),
    "dash/film.mpd": Buffer.from(manifestOf(bytes)),
    "dash/film.webm": bytes,
  };
  const shown = await showSame(browser, world, files, async (page) => {
    await page.addScriptTag({ url: "/ec/dash/dash.js" });
    const { picture, ...seen } = await page.evaluate(async (seconds) => {
      const video = document.createElement("video");
      video.muted = true;
      document.body.append(video);
      const player = dashjs.MediaPlayer().create();
      const problems: string[] = [];
      player.on(dashjs.MediaPlayer.events.ERROR, ({ type }) => void problems.push(type));
      player.initialize(video, "/ec/dash/film.mpd");
      const playUntil = async (isThere: () => boolean): Promise<void> => {
        await video.play();
        while (!isThere())
          await new Promise((resolve) => video.addEventListener("timeupdate", resolve, { once: true }));
      };
      await playUntil(() => video.currentTime > 0.3);
      video.currentTime = seconds - 2;
      await playUntil(() => video.ended);
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
      canvas.getContext("2d")!.drawImage(video, 0, 0);
      return { duration: video.duration, at: video.currentTime, picture: canvas.toDataURL(), problems };
    }, SECONDS);
    return { ...seen, picture: sha256(Buffer.from(picture)) };
  });
  expect(shown).toMatchObject({ duration: SECONDS, at: SECONDS, problems: [] });
});
