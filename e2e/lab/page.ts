/** The lab as one HTML file, which asks for nothing else. Plots are rows of a table, so that they read well aloud. */
import { readFileSync } from "node:fs";
import { transformSync } from "esbuild";
import type { Plot, PlotRow } from "./plots.ts";

/** Where the plots come from. */
export interface Provenance {
  readonly commit: string;
  /** ISO 8601. */
  readonly at: string;
}

/** Returns the page. */
export function labPage(plots: readonly Plot[], { commit, at }: Provenance): string {
  const script = transformSync(readFileSync(new URL("filter.ts", import.meta.url), "utf8"), { loader: "ts" }).code;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Agarose lab</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Agarose lab</h1>
<p>Commit <code>${escapeHtml(commit)}</code>, ${escapeHtml(at)}. A bar is the mean time of a read, and the line behind
it ends at the 99th percentile. <i>Real</i> is Chromium over the emulated WAN; its links make the milliseconds.</p>
${filters(plots)}
${[...Map.groupBy(plots, ({ question }) => question)].map(([question, own]) => `<h2>${escapeHtml(question)}</h2>\n${own.map(section).join("\n")}`).join("\n")}
</main>
<script type="module">${script}</script>
</body>
</html>
`;
}

function filters(plots: readonly Plot[]): string {
  const select = (name: "question" | "way" | "world" | "fault", label: string): string => {
    const options = unique(plots.map((plot) => plot[name])).map((value) => `<option>${escapeHtml(value)}</option>`);
    return `<label>${label} <select name="${name}"><option value="">all</option>${options.join("")}</select></label>`;
  };
  const boxes = unique(plots.flatMap(({ rows }) => rows.map(({ system }) => system))).map(
    (system) =>
      `<label><input type="checkbox" name="system" value="${escapeHtml(system)}" checked> ${escapeHtml(system)}</label>`,
  );
  return `<form hidden aria-label="Filters">
${[select("question", "Question"), select("way", "Way"), select("world", "World"), select("fault", "Fault")].join("\n")}
<details><summary>Policies and systems</summary>
<button type="button" id="all-systems">All</button> <button type="button" id="no-system">None</button>
<fieldset><legend>Shown</legend>${boxes.join("\n")}</fieldset></details>
<output></output>
</form>`;
}

function section(plot: Plot): string {
  const { question, way, world, fault, noteHead, rows, origin } = plot;
  const data = Object.entries({ question, way, world, fault }).map(
    ([name, value]) => `data-${name}="${escapeHtml(value)}"`,
  );
  const longest = Math.max(...rows.flatMap(({ meanMs = 0, p99Ms = 0 }) => [meanMs, p99Ms]));
  return `<section ${data.join(" ")}>
<h3>${escapeHtml(`${world}, ${fault}: ${way}`)}</h3>
<table>
<thead><tr><th scope="col">system</th><th scope="col">mean and p99</th><th scope="col">mean, ms</th>
<th scope="col">p99, ms</th><th scope="col">${escapeHtml(noteHead)}</th></tr></thead>
<tbody>${rows.map((row) => line(row, longest)).join("\n")}</tbody>
</table>
<p class="soft">${escapeHtml(origin)}</p>
</section>`;
}

function line({ system, meanMs, p99Ms, note }: PlotRow, longest: number): string {
  const share = (ms: number | undefined): string => ((100 * (ms ?? 0)) / longest).toFixed(1);
  const text = (ms: number | undefined): string => (ms === undefined ? "none" : ms.toFixed(0));
  return (
    `<tr data-system="${escapeHtml(system)}"><th scope="row">${escapeHtml(system)}</th>` +
    '<td class="plot"><svg viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">' +
    `<rect class="p99" y="5" height="2" width="${share(p99Ms)}"/><rect class="mean" height="12" width="${share(meanMs)}"/>` +
    `</svg></td><td>${text(meanMs)}</td><td>${text(p99Ms)}</td><td>${escapeHtml(note)}</td></tr>`
  );
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
}

const STYLE = `
:root { color-scheme: light dark; --ink: light-dark(#1b1f24, #e6edf3); --soft: light-dark(#57606a, #9aa7b3);
  --line: light-dark(#d8dee4, #30363d); --mean: light-dark(#2f6f9f, #6cb2e0); --p99: light-dark(#b5651d, #e0a36c); }
body { max-width: 1000px; margin: 0 auto; padding: 24px 16px 48px; background: light-dark(#fff, #0f1318);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
[hidden] { display: none !important; }
h2 { margin: 32px 0 8px; border-top: 1px solid var(--line); padding-top: 12px; font-size: 20px; }
h3 { margin: 20px 0 6px; font-size: 15px; }
form { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: baseline; }
form details { flex-basis: 100%; }
fieldset { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 8px 0; border: 1px solid var(--line); }
select, button { max-width: 100%; min-height: 28px; font: inherit; }
summary { min-height: 28px; }
table { width: 100%; border-collapse: collapse; table-layout: fixed; font-variant-numeric: tabular-nums; }
th, td { padding: 2px 8px 2px 0; overflow-wrap: anywhere; font-weight: 400; text-align: right; }
th:first-child { width: 30%; text-align: left; }
th:nth-child(2) { width: 30%; text-align: left; }
thead th, .soft { color: var(--soft); font-size: 13px; }
svg { display: block; width: 100%; height: 12px; }
.mean { fill: var(--mean); }
.p99 { fill: var(--p99); }
@media (max-width: 600px) { body { font-size: 13px; } th:nth-child(2) { width: 20%; } }
`;
