/** The video in pieces of two seconds, played by the real `hls.js`. */
import type Hls from "hls.js";
import { PIECES, VIDEO } from "../../samples/index.ts";
import { byId, h } from "../page/dom.ts";
import { count } from "../page/format.ts";
import { startTrial, type TrialPorts } from "./trial.ts";

/** What the journey plays: some seconds from each of these on. A region may die after the first. */
const STARTS_SECONDS = [0, 14, 30, 42];
const PLAYED_SECONDS = 1;
/** Pieces that the player loads ahead, in seconds: most of the film is not there yet when a region dies. */
const AHEAD_SECONDS = 4;

export function startPieces(ports: TrialPorts): void {
  const video = h("video", { class: "large", controls: true, muted: true, playsinline: true, preload: "none" });
  // The attribute alone does not mute what a script has made.
  video.muted = true;
  let player: Hls | undefined;
  const { element } = startTrial({
    ...ports,
    title: "Play the film in pieces",
    isOwn: (key) => key.startsWith(PIECES.folder),
    async work(halfway) {
      const { default: Player, Events, ErrorDetails } = await import("hls.js");
      player?.destroy();
      player = new Player({ maxBufferLength: AHEAD_SECONDS, maxMaxBufferLength: AHEAD_SECONDS });
      let [pieces, bytes] = [0, 0];
      const failed = Promise.withResolvers<never>();
      failed.promise.catch(() => {});
      player.on(Events.FRAG_LOADED, (_, { frag }) => {
        pieces++;
        bytes += frag.stats.loaded;
      });
      player.on(Events.ERROR, (_, { fatal, details }) => {
        if (fatal && details !== ErrorDetails.INTERNAL_ABORTED) failed.reject(new Error(`hls.js: ${details}`));
      });
      player.loadSource(`/ec/${PIECES.key}`);
      player.attachMedia(video);
      for (const [i, start] of STARTS_SECONDS.entries()) {
        if (i === 1) await halfway();
        await Promise.race([playFrom(video, start), failed.promise]);
      }
      return { bytes, what: `${count(pieces, "piece")} from ${count(STARTS_SECONDS.length, "place")} of the film` };
    },
  });
  byId("pieces").replaceChildren(
    element,
    h("figure", { class: "stage" }, video, h("figcaption", {}, h("strong", {}, VIDEO.title), ` ${VIDEO.licence}`)),
  );
}

async function playFrom(video: HTMLVideoElement, seconds: number): Promise<void> {
  const until = (event: string): Promise<Event> =>
    new Promise((resolve) => video.addEventListener(event, resolve, { once: true }));
  if (video.readyState === HTMLMediaElement.HAVE_NOTHING) await until("loadedmetadata");
  video.currentTime = seconds;
  await video.play();
  while (video.currentTime < seconds + PLAYED_SECONDS) await until("timeupdate");
  video.pause();
}
