/** Which chunk of each read came from where, and when: as a page, and as lines of text. Pure. */
import type { Read, ReadRequest } from "./reads.ts";

const WIDTH = 800;
const LABEL_WIDTH = 260;
const ROW_HEIGHT = 18;
/** Characters of the longest bar in text. */
const COLUMNS = 40;
const COLOURS: Readonly<Record<ReadRequest["outcome"], string>> = {
  used: "#2b6f55",
  unused: "#9a9a92",
  cancelled: "#c9c9c1",
  failed: "#b3261e",
  pending: "#d9a441",
};

/** The rules of a page of waterfalls. */
export const STYLE = `
  body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem; max-width: ${WIDTH}px; color: #16211d; background: #fff }
  h1 { font-size: 1.3rem } h2 { font-size: 1rem; margin: 2rem 0 0 } p { margin: 0 }
  svg { display: block; width: 100%; max-width: ${WIDTH}px; height: auto }
  text { font: 11px ui-monospace, monospace; fill: #16211d }
`;
/** Which colour is which outcome, as HTML. */
export const LEGEND = Object.entries(COLOURS)
  .map(([outcome, colour]) => `<b style="color:${colour}">${outcome}</b>`)
  .join(", ");

/** An HTML document without scripts: a table of the reads, and a waterfall of the requests of each. */
export function waterfallPage(title: string, reads: readonly Read[]): string {
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Reads of ${escaped(title)}</title>
<style>${STYLE}</style>
<h1>Reads of ${escaped(title)}</h1>
<p>Number of reads: ${reads.length}. A bar is the request of one chunk: ${LEGEND}.</p>
${reads.map(readSection).join("\n")}
</html>
`;
}

/** One read as lines of text: its facts, and a bar for each request. */
export function waterfallLines(read: Read): string[] {
  const { fromMs, toMs } = spanOf(read.requests);
  const column = (ms: number): number => Math.round(((ms - fromMs) / (toMs - fromMs)) * COLUMNS);
  const labelWidth = Math.max(0, ...read.requests.map((request) => labelOf(request).length));
  const lines = read.requests.map((request) => {
    const { startMs, endMs = toMs, outcome } = request;
    const start = Math.min(column(startMs), COLUMNS - 1);
    const bar = "=".repeat(Math.max(1, column(endMs) - start)).padStart(Math.max(start + 1, column(endMs)));
    return `  ${labelOf(request).padEnd(labelWidth)} |${bar.padEnd(COLUMNS)}| ${endOf(request, toMs)}, ${outcome}`;
  });
  return [`${nameOf(read)}: ${factsOf(read)}`, ...lines];
}

/** A read as HTML: its facts, and its waterfall. */
export function readSection(read: Read): string {
  return `<section><h2>${escaped(nameOf(read))}</h2>
<p>${escaped(factsOf(read))}</p>${chart(read.requests)}</section>`;
}

function nameOf({ key, range }: Read): string {
  return `${key}${range === undefined ? "" : ` (${range})`}`;
}

function factsOf({ status, kind, ms, bytes, expectedMs, error }: Read): string {
  return [
    `${status} ${kind ?? ""}`.trim(),
    `${Math.round(ms)} ms`,
    ...(expectedMs === undefined ? [] : [`${Math.round(expectedMs)} ms expected of the first stripe`]),
    `${bytes} bytes`,
    ...(error === undefined ? [] : [error]),
  ].join(", ");
}

function spanOf(requests: readonly ReadRequest[]): { fromMs: number; toMs: number } {
  const fromMs = Math.min(...requests.map(({ startMs }) => startMs));
  return { fromMs, toMs: Math.max(...requests.map(({ startMs, endMs = startMs }) => endMs), fromMs + 1) };
}

function labelOf({ stripe, chunk, source }: ReadRequest): string {
  return `stripe ${stripe} chunk ${chunk} ${source}`;
}

function endOf({ startMs, endMs, outcome, error }: ReadRequest, toMs: number): string {
  return outcome === "failed" ? (error ?? "failed") : `${Math.round((endMs ?? toMs) - startMs)} ms`;
}

function chart(requests: readonly ReadRequest[]): string {
  if (requests.length === 0) return "";
  const { fromMs, toMs } = spanOf(requests);
  const scale = (WIDTH - LABEL_WIDTH - 60) / (toMs - fromMs);
  const rows = requests.map((request, index) => {
    const { startMs, endMs = toMs, outcome } = request;
    const x = LABEL_WIDTH + (startMs - fromMs) * scale;
    const width = Math.max(1, (endMs - startMs) * scale);
    const y = index * ROW_HEIGHT;
    return (
      `<text x="0" y="${y + 12}">${escaped(labelOf(request))}</text>` +
      `<rect x="${x.toFixed(1)}" y="${y + 3}" width="${width.toFixed(1)}" height="12" fill="${COLOURS[outcome]}"/>` +
      `<text x="${(x + width + 4).toFixed(1)}" y="${y + 12}">${escaped(endOf(request, toMs))}</text>`
    );
  });
  const height = requests.length * ROW_HEIGHT;
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Waterfall">${rows.join("")}</svg>`;
}

/** A text for HTML, also in an attribute. */
export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
