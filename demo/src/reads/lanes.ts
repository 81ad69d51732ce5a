/**
 * The lanes: one per read with the newest on the right, and one band per chunk at the time it arrived (log scale, top
 * is fast). A lane is a button that chooses its read.
 */
import { byId, h } from "../page/dom.ts";
import { ms } from "../page/format.ts";
import type { Palette } from "../state/palette.ts";
import type { Read, ReadLog, ReadRequest } from "../state/reads.ts";

/** Width of a lane with its gap, in CSS pixels: 24 px is the smallest target that is easy to hit. */
const LANE_PX = 27;
const FASTEST_MS = 5;
const SLOWEST_MS = 5000;
const TICKS_MS = [10, 30, 100, 300, 1000, 3000];

/** The drawn lanes. */
export interface Lanes {
  /** Marks the lane of a read. */
  choose(id: string | undefined): void;
}

/** Draws a lane for every read of `log`. */
export function startLanes(log: ReadLog, palette: Palette, onChoose: (read: Read) => void): Lanes {
  const lanes = h("div", { class: "lanes", role: "group", "aria-label": "Latest reads, oldest first" });
  const ticks = TICKS_MS.map((tick) => h("span", { class: "tick", style: `top:${depth(tick)}%` }, ms(tick)));
  byId("lanes").append(h("div", { class: "ticks", "aria-hidden": true }, ...ticks), lanes);
  drawEmpty(lanes);
  const buttons = new Map<string, HTMLButtonElement>();

  const dirty = new Set<Read>();
  let scheduled = false;
  log.addEventListener("read", (event) => {
    const { detail: read } = event as CustomEvent<Read>;
    for (const older of dirty) if (older.id === read.id) dirty.delete(older);
    dirty.add(read);
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => {
      scheduled = false;
      for (const changed of dirty) drawLane(changed);
      dirty.clear();
    });
  });
  lanes.addEventListener("keydown", moveFocus);

  function drawLane(read: Read): void {
    lanes.querySelector(".empty")?.remove();
    const lane = buttons.get(read.id) ?? addLane(read.id);
    lane.replaceChildren(...bands(read, palette));
    lane.setAttribute("aria-label", describe(read));
    lane.title = describe(read);
    lane.classList.toggle("failed", read.error !== undefined);
  }

  function addLane(id: string): HTMLButtonElement {
    // One lane is in the tab order; arrow keys reach the others.
    const tabindex = lanes.querySelector("[tabindex='0']") ? -1 : 0;
    const lane = h("button", { class: "lane", type: "button", tabindex, "aria-pressed": "false" });
    lane.addEventListener("click", () => {
      const read = log.get(id);
      if (read) onChoose(read);
    });
    buttons.set(id, lane);
    lanes.append(lane);
    // Lanes that do not fit would be focusable and out of sight.
    const lanesMax = Math.max(1, Math.floor(lanes.clientWidth / LANE_PX));
    while (buttons.size > lanesMax) {
      const [oldest, element] = buttons.entries().next().value!;
      element.remove();
      buttons.delete(oldest);
    }
    return lane;
  }

  return {
    choose(id) {
      for (const lane of lanes.querySelectorAll<HTMLElement>("[aria-pressed='true'], [tabindex='0']")) {
        lane.setAttribute("aria-pressed", "false");
        lane.tabIndex = -1;
      }
      const lane = id === undefined ? undefined : buttons.get(id);
      lane?.setAttribute("aria-pressed", "true");
      (lane ?? [...buttons.values()].at(-1))?.setAttribute("tabindex", "0");
    },
  };
}

function drawEmpty(lanes: HTMLElement): void {
  lanes.append(h("p", { class: "empty" }, "No read yet."));
}

/** Arrow keys walk over the lanes. */
function moveFocus(event: KeyboardEvent): void {
  const step = { ArrowLeft: "previousElementSibling", ArrowRight: "nextElementSibling" }[event.key];
  if (!step) return;
  const next = (document.activeElement as HTMLElement)[step as "nextElementSibling"];
  if (next instanceof HTMLButtonElement) {
    next.focus();
    next.click();
    event.preventDefault();
  }
}

/** Bands at the same place from the same source are drawn once, so that a read of many stripes stays cheap. */
function bands(read: Read, palette: Palette): HTMLElement[] {
  const seen = new Map<string, HTMLElement>();
  for (const request of read.requests) {
    if (request.endMs === undefined) continue;
    const top = Math.round(2 * depth(request.endMs - request.startMs)) / 2;
    const name = `${top} ${request.source} ${request.outcome}`;
    if (!seen.has(name)) seen.set(name, band(request, top, palette));
  }
  return [...seen.values()];
}

function band({ kind, source, outcome }: ReadRequest, top: number, palette: Palette): HTMLElement {
  return h("i", { class: `band ${outcome}`, style: `top:${top}%;--c:${palette.of(kind, source)}` });
}

/** Returns where a time is in its lane, in percent from the top. */
function depth(time: number): number {
  const clamped = Math.min(SLOWEST_MS, Math.max(FASTEST_MS, time));
  return 3 + (94 * Math.log(clamped / FASTEST_MS)) / Math.log(SLOWEST_MS / FASTEST_MS);
}

function describe({ key, kind, ms: time, error }: Read): string {
  if (error) return `${key}: ${error.code}`;
  return `${key}: ${time === undefined ? "in progress" : ms(time)}${kind ? `, ${kind}` : ""}`;
}
