/** Simulation results as one self-contained page: tables and plots in SVG, no script, nothing loaded from elsewhere. */

import type { Scenario, SimulationRow } from "@agarose/solver/simulator";
import { sentenceOf, type CacheSizes } from "./cache-sizes.ts";

const COLOURS = "#1b6ca8 #d1495b #2e933c #edae49 #7b4fa3 #00798c #8d5524 #5c5c5c #e36414 #4d9de0 #b5179e #606c38".split(
  " ",
);
const WIDTH = 720;
const HEIGHT = 320;
const LEFT = 70;
const BOTTOM = 40;

/** Returns the results as one HTML file without scripts. `sizes` adds the curves over cache sizes. */
export function renderHtml(scenario: Scenario, rows: readonly SimulationRow[], sizes: CacheSizes | undefined): string {
  const all = rows.filter((row) => row.pop === "all");
  const parts = [
    `<h1>${escape(scenario.name)}</h1><p>${escape(scenario.about)}</p>`,
    `<h2>Mean latency by policy</h2>${bars(all.map((row) => [row.name, row.meanMs, `${row.meanMs.toFixed(1)} ms`]))}`,
    `<h2>Latency distribution</h2>${lines(
      "share of reads",
      "ms",
      all.map((row) => ({
        name: row.name,
        points: (row.quantilesMs ?? []).map((ms, q) => [ms, q / 100] as const),
      })),
      true,
    )}`,
    `<h2>Hit ratios</h2>${hitTable(all)}`,
    `<h2>Objects kept by number of chunks (end of the last run)</h2>${contentsTable(all)}`,
  ];
  if (sizes) {
    const names = [...new Set(sizes.sizes.map(({ name }) => name))];
    const series = (of: "meanMs" | "costPerMonth"): Series[] =>
      names.map((name) => ({
        name,
        points: sizes.sizes.filter((size) => size.name === name).map((size) => [size.factor, size[of]] as const),
      }));
    parts.push(
      `<h2>Latency against cache size</h2>${lines("mean ms", "times the scenario's caches", series("meanMs"))}`,
      `<p><b>${escape(sentenceOf(sizes.recommended))}</b></p>`,
      `<h2>KV reads, writes and storage</h2>${lines("$ per month", "times the scenario's caches", series("costPerMonth"))}`,
    );
  }
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escape(scenario.name)}</title><style>${STYLE}</style><body>${parts.join("\n")}</body></html>\n`;
}

const STYLE =
  "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}" +
  "table{border-collapse:collapse}td,th{padding:.15rem .7rem;text-align:right;border-bottom:1px solid #ddd}" +
  "td:first-child,th:first-child{text-align:left}svg{max-width:100%}text{font:12px system-ui,sans-serif}";

interface Series {
  readonly name: string;
  readonly points: readonly (readonly [number, number])[];
}

function bars(entries: readonly (readonly [string, number, string])[]): string {
  const most = Math.max(...entries.map(([, value]) => value), 1e-9);
  const body = entries.map(([name, value, label], i) => {
    const y = 22 * i;
    const width = (value / most) * (WIDTH - 330);
    return (
      `<text x="210" y="${y + 15}" text-anchor="end">${escape(name)}</text>` +
      `<rect x="218" y="${y + 3}" width="${width.toFixed(1)}" height="16" fill="${colour(i)}"/>` +
      `<text x="${(224 + width).toFixed(1)}" y="${y + 15}">${escape(label)}</text>`
    );
  });
  return `<svg viewBox="0 0 ${WIDTH} ${22 * entries.length}" role="img">${body.join("")}</svg>`;
}

/** Line plot; `isUnitHigh` fixes the vertical axis to 0..1. */
function lines(yTitle: string, xTitle: string, series: readonly Series[], isUnitHigh = false): string {
  const points = series.flatMap((one) => one.points);
  const xMax = Math.max(...points.map(([x]) => x), 1e-9);
  const yMax = isUnitHigh ? 1 : Math.max(...points.map(([, y]) => y), 1e-9);
  const px = (x: number): number => LEFT + (x / xMax) * (WIDTH - LEFT - 180);
  const py = (y: number): number => HEIGHT - BOTTOM - (y / yMax) * (HEIGHT - BOTTOM - 10);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map(
    (t) =>
      `<text x="${LEFT - 6}" y="${py(t * yMax) + 4}" text-anchor="end">${short(t * yMax)}</text>` +
      `<text x="${px(t * xMax)}" y="${HEIGHT - BOTTOM + 16}" text-anchor="middle">${short(t * xMax)}</text>` +
      `<line x1="${LEFT}" x2="${WIDTH - 180}" y1="${py(t * yMax)}" y2="${py(t * yMax)}" stroke="#e5e5e5"/>`,
  );
  const drawn = series.map(({ name, points: own }, i) => {
    const path = own.map(([x, y]) => `${px(x).toFixed(1)},${py(y).toFixed(1)}`).join(" ");
    return (
      `<polyline points="${path}" fill="none" stroke="${colour(i)}" stroke-width="2"/>` +
      `<text x="${WIDTH - 172}" y="${16 + 16 * i}" fill="${colour(i)}">${escape(name)}</text>`
    );
  });
  const titles =
    `<text x="${(LEFT + WIDTH - 180) / 2}" y="${HEIGHT - 6}" text-anchor="middle">${escape(xTitle)}</text>` +
    `<text x="14" y="${HEIGHT / 2}" transform="rotate(-90 14 ${HEIGHT / 2})" text-anchor="middle">${escape(yTitle)}</text>`;
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img">${ticks.join("")}${drawn.join("")}${titles}</svg>`;
}

function hitTable(rows: readonly SimulationRow[]): string {
  const percent = (ratio: number): string => `${(100 * ratio).toFixed(1)}%`;
  return table(
    ["policy", "any chunk", "full", "by chunk", "chunks from peers", "requests per read", "writes"],
    rows.map((row) => [
      row.name,
      percent(row.hitRatio),
      percent(row.fullHitRatio),
      percent(row.chunkHitRatio),
      percent(row.peerChunkRatio),
      row.requestsPerRead.toFixed(2),
      row.writes.toFixed(0),
    ]),
  );
}

function contentsTable(rows: readonly SimulationRow[]): string {
  const widest = Math.max(...rows.map((row) => row.objectsByChunks.length));
  const columns = Array.from({ length: widest - 1 }, (_, i) => i + 1);
  return table(
    ["policy", ...columns.map((d) => `${d}`)],
    rows.map((row) => [row.name, ...columns.map((d) => `${row.objectsByChunks[d] ?? ""}`)]),
  );
}

function table(head: readonly string[], body: readonly (readonly string[])[]): string {
  const row = (tag: string, cells: readonly string[]): string =>
    `<tr>${cells.map((cell) => `<${tag}>${escape(cell)}</${tag}>`).join("")}</tr>`;
  return `<table>${row("th", head)}${body.map((cells) => row("td", cells)).join("")}</table>`;
}

function colour(i: number): string {
  return COLOURS[i % COLOURS.length]!;
}

function short(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
