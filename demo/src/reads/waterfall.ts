/** The waterfall of one read: every request as a bar, when it started and how it ended, and the totals above. */
import { byId, h, row, table } from "../page/dom.ts";
import { bitRate, bytes, count, ms } from "../page/format.ts";
import type { Palette } from "../state/palette.ts";
import { explainRead, usedChunks, type Outcome, type Read, type ReadRequest } from "../state/reads.ts";

/** Above this many requests the bars are thin and unlabelled. */
const LABELLED_MAX = 30;
/** Room for what is written behind the last bar. */
const NOTE_SHARE = 0.22;

const COLUMNS = ["stripe", "chunk", "source", "asked at", "ended at", "outcome"];

const NOTES: Partial<Record<Outcome, string>> = {
  pending: "…",
  unused: "not needed",
  cancelled: "dropped",
  gone: "no longer cached",
};

export class Waterfall {
  readonly #palette: Palette;
  readonly #element = byId("waterfall");

  constructor(palette: Palette) {
    this.#palette = palette;
    this.#element.replaceChildren(
      h(
        "p",
        { class: "empty" },
        "The requests of a read appear here: choose a photograph, seek in the video, or load the model.",
      ),
    );
  }

  draw(read: Read): void {
    const last = Math.max(
      1,
      read.expectedMs ?? 0,
      read.firstByteMs ?? 0,
      ...read.requests.map(({ endMs }) => endMs ?? 0),
    );
    const end = last * (1 + NOTE_SHARE);
    this.#element.replaceChildren(totals(read), this.#bars(read, end), axis(read, end), asTable(read));
  }

  #bars(read: Read, end: number): HTMLElement {
    const compact = read.requests.length > LABELLED_MAX;
    const bars = h("div", { class: compact ? "bars compact" : "bars", "aria-hidden": true });
    if (read.plan) bars.append(planRow(read.plan, end));
    const stripes = Map.groupBy(read.requests, ({ stripe }) => stripe);
    for (const [stripe, requests] of [...stripes].toSorted(([a], [b]) => a - b)) {
      if (stripes.size > 1) bars.append(h("p", { class: "stripe" }, `stripe ${stripe}`));
      const ordered = requests.toSorted((a, b) => a.startMs - b.startMs || (a.endMs ?? end) - (b.endMs ?? end));
      for (const request of ordered) bars.append(this.#row(read, request, end));
    }
    if (read.decodeMs > 0 && stripes.size === 1) bars.append(decodeRow(read, end));
    if (read.expectedMs !== undefined && Number.isFinite(read.expectedMs)) {
      bars.append(h("span", { class: "expected", style: `--x:${read.expectedMs / end}` }));
    }
    return bars;
  }

  #row(read: Read, request: ReadRequest, end: number): HTMLElement {
    const { startMs, outcome, kind, source, error } = request;
    const endMs = request.endMs ?? end;
    const place = `--from:${startMs / end};--to:${endMs / end};--c:${this.#palette.of(kind, source)}`;
    const note = NOTES[outcome] ?? (outcome === "failed" ? error : ms(endMs - startMs));
    const name = h("span", { class: "name" }, h("b", {}, label(read, request)), ` ${source}`);
    return h("div", { class: "row", title: sentence(read, request) }, name, track(outcome, place, note));
  }
}

function totals(read: Read): HTMLElement {
  const { edge, all } = usedChunks(read);
  const time = read.ms === undefined ? "…" : ms(read.ms);
  return h(
    "div",
    { class: "totals" },
    h("p", { class: "what" }, h("b", {}, read.key), read.range ? ` ${read.range}` : "", kindBadge(read)),
    read.error && h("p", { class: "problem" }, h("code", {}, read.error.code), ` ${explainRead(read).message}`),
    h(
      "dl",
      {},
      ...figure("whole", time, read.bytes && read.ms ? `${bytes(read.bytes)}, ${bitRate(read.bytes, read.ms)}` : ""),
      ...figure(
        "first stripe",
        firstStripe(read),
        read.expectedMs === undefined ? "" : `expected ${ms(read.expectedMs)}`,
      ),
      ...figure("requests", ...requestsText(read)),
      ...figure("from edge", `${edge} of ${all}`, "chunks used"),
      ...figure(
        "decoded",
        count(read.decodedShards, "chunk"),
        read.decodedShards ? `in ${read.decodeMs.toFixed(1)} ms` : "no parity was needed",
      ),
    ),
  );
}

function firstStripe({ firstByteMs, ms: whole }: Read): string {
  if (firstByteMs !== undefined) return ms(firstByteMs);
  return whole === undefined ? "…" : "unknown";
}

function requestsText({ k, delta, requests, decoder }: Read): [value: string, note: string] {
  if (decoder === "edge") return ["at the edge", ""];
  const number = (...outcomes: Outcome[]): number =>
    requests.filter(({ outcome }) => outcomes.includes(outcome)).length;
  const stripes = new Set(requests.map(({ stripe }) => stripe)).size;
  const plan = k === undefined ? "" : `k ${k} + ${delta ?? "?"}${stripes > 1 ? `, ${stripes} stripes` : ""}`;
  const dropped = number("cancelled", "unused");
  const failed = number("failed");
  const notes = [plan, dropped > 0 && `${dropped} dropped`, failed > 0 && `${failed} failed`];
  return [String(requests.length), notes.filter(Boolean).join("; ")];
}

function figure(name: string, value: string, note: string): HTMLElement[] {
  return [h("div", {}, h("dt", {}, name), h("dd", {}, value, note ? h("small", {}, note) : undefined))];
}

function kindBadge({ kind, decoder, error }: Read): HTMLElement {
  const text = error ? "error" : (kind ?? "under way");
  return h("span", { class: `badge ${text}` }, decoder === "edge" ? `${text}, decoded at the edge` : text);
}

/** From the start to the moment when it was known what to fetch. */
function planRow({ ms: at, from, pop }: NonNullable<Read["plan"]>, end: number): HTMLElement {
  const who =
    { known: "already known", edge: `from ${pop ?? "the edge"}`, region: "from a region's manifest" }[from] ?? from;
  return spanRow("plan", 0, at, end, who);
}

/** The codec runs last, once k chunks are there. */
function decodeRow({ firstByteMs, ms: total, decodeMs }: Read, end: number): HTMLElement {
  const to = firstByteMs ?? total ?? end;
  return spanRow("decode", Math.max(0, to - decodeMs), to, end, ms(decodeMs));
}

function spanRow(name: string, fromMs: number, toMs: number, end: number, note: string): HTMLElement {
  const place = `--from:${fromMs / end};--to:${toMs / end};--c:var(--ink-soft)`;
  return h("div", { class: "row" }, h("span", { class: "name" }, name), track("used", place, note));
}

function track(outcome: Outcome, style: string, note: string | undefined): HTMLElement {
  return h("span", { class: "track" }, h("span", { class: `bar ${outcome}`, style }, h("em", {}, note)));
}

/** `d3` is data chunk 3, `p1` parity chunk 1, `f2` functional chunk 2. */
function label({ k }: Read, { chunk, chunks }: ReadRequest): string {
  if (chunk === undefined) return `${chunks}×`;
  if (k === undefined) return `#${chunk}`;
  return chunk < k ? `d${chunk}` : `p${chunk - k}`;
}

function sentence(read: Read, request: ReadRequest): string {
  const { stripe, source, outcome, startMs, endMs, error } = request;
  const time = endMs === undefined ? "" : `, ${ms(startMs)} to ${ms(endMs)}`;
  return `${label(read, request)} of stripe ${stripe} from ${source}: ${outcome}${error ? ` (${error})` : ""}${time}`;
}

function axis({ expectedMs }: Read, end: number): HTMLElement {
  const step = niceStep(end / 4);
  const element = h("div", { class: "axis", "aria-hidden": true });
  for (let at = 0; at < end * 0.93; at += step) element.append(h("span", { style: `--x:${at / end}` }, ms(at)));
  if (expectedMs !== undefined) {
    element.append(h("span", { class: "plan", style: `--x:${expectedMs / end}` }, "expected"));
  }
  return element;
}

/** The next of 1, 2, 5, 10, … */
function niceStep(raw: number): number {
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10);
}

/** The same as a table, for screen readers. */
function asTable(read: Read): HTMLElement {
  const rows = (): HTMLElement[] =>
    read.requests.map((request) => {
      const { stripe, source, outcome, startMs, endMs, error } = request;
      const ended = endMs === undefined ? "" : ms(endMs);
      return row(stripe, label(read, request), source, ms(startMs), ended, error ?? outcome);
    });
  const body = h("tbody");
  const scroll = h("div", { class: "scroll" }, table(COLUMNS, body));
  const details = h("details", { class: "table" }, h("summary", {}, "As a table"), scroll);
  details.addEventListener("toggle", () => body.replaceChildren(...(details.open ? rows() : [])));
  return details;
}
