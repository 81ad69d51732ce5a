/**
 * Draws docs/internals/ablation.svg, what reads lose without each idea, from the table of docs/internals/papers.md.
 *
 *   node scripts/docs/ablation.ts
 */
import { readFileSync, writeFileSync } from "node:fs";
import { numberOf, tableAfter, type TableRows } from "./markdown-table.ts";

/** The picture. */
export const PICTURE = new URL("../../docs/internals/ablation.svg", import.meta.url);

const PAGE = new URL("../../docs/internals/papers.md", import.meta.url);
const WIDTH = 720;
/** Where the bars begin. */
const LEFT = 300;
/** Right of the longest bar, for its figure. */
const RIGHT = 64;
const ROW = 44;
const TOP = 34;
const BARS = [
  { column: "change", name: "mean", dy: 6 },
  { column: "change 2", name: "p99", dy: 22 },
] as const;

/** Returns the picture of the table that papers.md has now. */
export function ablationPicture(): string {
  return pictureOf(tableAfter(readFileSync(PAGE, "utf8"), "### The whole without each idea"));
}

function pictureOf(rows: TableRows): string {
  const without = rows.slice(1);
  const changes = without.flatMap((row) => BARS.map(({ column }) => numberOf(row, column) ?? 0));
  const scale = (WIDTH - LEFT - RIGHT) / Math.max(...changes);
  const height = TOP + ROW * without.length;
  const legend = BARS.map(
    ({ name }, i) =>
      `<rect class="${name}" x="${LEFT + 90 * i}" y="10" width="12" height="12"/>` +
      `<text x="${LEFT + 90 * i + 18}" y="20">${name}</text>`,
  );
  const drawn = without.map((row, i) => {
    const [, idea = "", paper = ""] = /^without (.*) \((.*)\)$/.exec(row["system"] ?? "") ?? [];
    const y = TOP + ROW * i;
    const bars = BARS.map(({ column, name, dy }) => {
      // A bar to the left of zero would be thinner than its edge: none is longer than a few tenths of a percent.
      const width = Math.max(1, scale * (numberOf(row, column) ?? 0));
      return (
        `<rect class="${name}" x="${LEFT}" y="${y + dy}" width="${width.toFixed(1)}" height="12"/>` +
        `<text x="${(LEFT + width + 6).toFixed(1)}" y="${y + dy + 10}">${row[column]}</text>`
      );
    });
    return (
      `<text x="${LEFT - 12}" y="${y + 17}" text-anchor="end">${idea}</text>` +
      `<text class="soft" x="${LEFT - 12}" y="${y + 33}" text-anchor="end">${paper}</text>${bars.join("")}`
    );
  });
  const title = "What reads lose without each idea of the whole";
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${title}">
<style>
text { font: 14px system-ui, sans-serif; fill: #1b1f24 }
.soft { fill: #57606a; font-size: 12px }
.mean { fill: #2f6f9f }
.p99 { fill: #b5651d }
</style>
<rect width="100%" height="100%" fill="#fff"/>
<text x="${LEFT - 12}" y="20" text-anchor="end">without</text>
${[...legend, ...drawn].join("\n")}
</svg>
`;
}

if (import.meta.main) writeFileSync(PICTURE, ablationPicture());
