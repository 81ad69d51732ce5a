/**
 * The video: a plain <video> on a path below /ec/. A seek becomes a Range request, which reads only the stripes it
 * needs. A list below the picture shows these requests.
 */
import { VIDEO } from "../../samples/index.ts";
import { byId, h, row, table } from "../page/dom.ts";
import { bytes, ms } from "../page/format.ts";
import type { Read, ReadLog } from "../state/reads.ts";
import { failureText } from "./trial.ts";

const SEEKS_SECONDS = [3, 12, 24, 36, 46];
const LISTED_MAX = 9;

/** Draws the tab. Returns a function that loads the video, for when the tab becomes visible. */
export function startVideo(log: ReadLog): () => void {
  const video = h("video", { class: "large", controls: true, muted: true, playsinline: true, preload: "metadata" });
  const note = h("p", { class: "note", role: "status" }, "Seek anywhere. The picture shows its own time code.");
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
    h("div", { class: "scroll" }, listOfRanges(log)),
  );

  let seekingSince = 0;
  video.addEventListener("seeking", () => (seekingSince = performance.now()));
  video.addEventListener("seeked", () => {
    note.textContent = `The picture at ${video.currentTime.toFixed(1)} s appeared ${ms(performance.now() - seekingSince)} after the seek.`;
  });
  video.addEventListener("error", () => {
    void failureText({ log, isOwn: (key) => key === VIDEO.key, key: VIDEO.key }, 0, video.error).then((text) =>
      note.replaceChildren(...text, " Then open this tab again."),
    );
  });

  return () => {
    if (video.src !== "" && !video.error) return;
    video.src = `/ec/${VIDEO.key}`;
  };
}

/** The Range requests that became reads, newest first. */
function listOfRanges(log: ReadLog): HTMLElement {
  const body = h("tbody");
  const rows = new Map<string, HTMLElement>();
  log.addEventListener("read", (event) => {
    const { detail: read } = event as CustomEvent<Read>;
    if (read.key !== VIDEO.key) return;
    const line = rangeRow(read);
    const before = rows.get(read.id);
    if (before) before.replaceWith(line);
    else body.prepend(line);
    rows.set(read.id, line);
    while (body.childElementCount > LISTED_MAX) body.lastElementChild?.remove();
  });
  const element = table(["requested range", "first stripe", "delivered", "kind"], body);
  element.className = "ranges";
  return element;
}

function rangeRow({ range, firstByteMs, bytes: length, kind, error }: Read): HTMLElement {
  const first = firstByteMs === undefined ? "…" : ms(firstByteMs);
  const asked = range?.replace("bytes=", "") ?? "whole";
  return row(asked, first, length ? bytes(length) : "…", error?.code ?? kind ?? "…");
}
