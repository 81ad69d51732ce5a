/** Which read the waterfall shows: the newest, until the user chooses a lane. */
import { byId, h } from "../page/dom.ts";
import { startLanes } from "./lanes.ts";
import type { Palette } from "../state/palette.ts";
import type { Read, ReadLog } from "../state/reads.ts";
import { Waterfall } from "./waterfall.ts";

/** A new read replaces the shown one no sooner than this, so that people can read it under load. */
const HOLD_MS = 900;

export function startReads(log: ReadLog, palette: Palette): void {
  const waterfall = new Waterfall(palette);
  const follow = h("button", { type: "button", class: "toggle", "aria-pressed": "true" }, "follow the newest");
  let following = true;
  let shown: string | undefined;
  let shownSince = 0;
  let newest: string | undefined;
  let waiting: ReturnType<typeof setTimeout> | undefined;
  let scheduled = false;

  const lanes = startLanes(log, palette, (read) => {
    setFollowing(false);
    show(read.id);
  });
  const entry = (sign: Readonly<Record<string, string>>, name: string): HTMLElement =>
    h("span", { class: "source" }, h("i", sign), name);
  const swatches = palette.all().map(({ name, colour, kind }) => {
    const sign = { class: `swatch ${kind}`, style: `--c:${colour}` };
    return entry(sign, kind === "edge" ? `edge ${name}` : name);
  });
  const endings = ["used", "cancelled", "failed"].map((outcome) =>
    entry({ class: `sample ${outcome}` }, outcome === "cancelled" ? "dropped" : outcome),
  );
  byId("legend").append(...swatches, ...endings, follow);
  follow.addEventListener("click", () => setFollowing(!following));

  log.addEventListener("read", (event) => {
    const { detail: read } = event as CustomEvent<Read>;
    if (read.id === shown) redraw();
    else if (following) showSoon(read.id);
  });

  /** Shows a read once the shown one has had its time, unless a newer one comes before that. */
  function showSoon(id: string): void {
    newest = id;
    const holdMs = shown === undefined ? 0 : shownSince + HOLD_MS - performance.now();
    if (holdMs <= 0) show(id);
    else waiting ??= setTimeout(() => following && newest !== undefined && show(newest), holdMs);
  }

  function show(id: string): void {
    clearTimeout(waiting);
    waiting = undefined;
    shown = id;
    shownSince = performance.now();
    redraw();
  }

  function redraw(): void {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => {
      scheduled = false;
      const read = shown === undefined ? undefined : log.get(shown);
      if (read) waterfall.draw(read);
      lanes.choose(shown);
    });
  }

  function setFollowing(on: boolean): void {
    following = on;
    follow.setAttribute("aria-pressed", String(on));
  }
}
