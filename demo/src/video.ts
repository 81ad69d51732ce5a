/**
 * The video: plain <video> on a path below /ec/. A seek becomes a Range request, which reads only the stripes it needs.
 */
import { VIDEO } from "../samples/index.ts";
import { byId, h } from "./dom.ts";
import { ms } from "./format.ts";

const SEEKS_SECONDS = [3, 12, 24, 36, 46];

/** Returns what to call when the video comes into sight: nothing of it is read before. */
export function startVideo(): () => void {
  const video = h("video", { class: "large", controls: true, muted: true, playsinline: true, preload: "metadata" });
  const note = h("p", { class: "note", role: "status" }, "Seek anywhere: the picture carries its own time code.");
  const seeks = SEEKS_SECONDS.map((second) =>
    h(
      "button",
      { type: "button", onclick: () => void (video.currentTime = second) },
      `0:${String(second).padStart(2, "0")}`,
    ),
  );
  byId("video").replaceChildren(
    h("figure", { class: "stage" }, video, h("figcaption", {}, h("strong", {}, VIDEO.title), ` ${VIDEO.licence}`)),
    h("div", { class: "line" }, h("span", {}, "Seek to"), ...seeks, note),
  );

  let seekingSince = 0;
  video.addEventListener("seeking", () => (seekingSince = performance.now()));
  video.addEventListener("seeked", () => {
    note.textContent = `The picture at ${video.currentTime.toFixed(1)} s was there ${ms(performance.now() - seekingSince)} after the seek.`;
  });
  video.addEventListener("error", () => {
    note.textContent = `The video cannot be read: ${video.error?.message || `media error ${video.error?.code}`}. Mend the world and open this tab again.`;
  });

  return () => {
    if (video.src !== "" && !video.error) return;
    video.src = `/ec/${VIDEO.key}`;
  };
}
