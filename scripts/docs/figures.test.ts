/**
 * README and Compare quote the comparisons of docs/internals/benchmarks.md as they are on record, and pages quote the
 * costs that docs/reference/request-costs.md has.
 */
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { quotedCosts, storageRows } from "../../packages/worker/scripts/operating-costs.ts";
import { numberOf, tableAfter, type TableRows } from "./markdown-table.ts";

const page = (path: string): Promise<string> => readFile(new URL(`../../${path}`, import.meta.url), "utf8");
const unwrapped = async (path: string): Promise<string> => (await page(path)).replace(/\s+/g, " ");
const records = await page("docs/internals/benchmarks.md");
const continent = tableAfter(records, "## Comparison: six providers");
const world = tableAfter(records, "## Comparison: six regions");
const overheads = tableAfter(records, "## Overhead of a cached read");

const SYSTEMS = ["agarose", "agarose, one code", "one copy, CDN", "two copies, CDN"];
const FIGURES = [
  "no faults: mean, ms",
  "no faults: p99, ms",
  "nearest region down: mean, ms",
  "nearest region down: failed",
];

/** A figure of a system, by the phase and the column that it has in the record. */
function figure(record: TableRows, system: string, name: string): number | undefined {
  const [phase, column = ""] = name.split(": ");
  return numberOf(
    record.find((row) => row[""] === `${phase}: ${system}`)!,
    column,
  );
}

test("the table of Compare has the figures on record", async () => {
  const rows = tableAfter(await page("docs/explanation/compare.md"), "## Latency and failed reads");
  const names = FIGURES.toSpliced(1, 0, "no faults: < 1 MB");
  const recorded = [
    ...names.map((name) => SYSTEMS.map((system) => figure(continent, system, name))),
    ...FIGURES.map((name) => SYSTEMS.map((system) => figure(world, system, name))),
  ];
  expect(
    rows.map((row) =>
      Object.keys(row)
        .slice(1)
        .map((column) => numberOf(row, column)),
    ),
  ).toEqual(recorded);
});

test("README has the figures on record", async () => {
  const readme = await unwrapped("README.md");
  const [auto, , one, two] = SYSTEMS as [string, string, string, string];
  const failed = (system: string): number | undefined => figure(continent, system, "nearest region down: failed");
  expect(readme).toContain(`${failed(auto)} of 450 reads failed. With one copy behind a CDN, ${failed(one)} did`);
  const small = (system: string): number | undefined => figure(continent, system, "no faults: < 1 MB");
  expect(readme).toContain(`${small(auto)} ms against ${small(one)} ms for files below 1 MB`);
  const mean = (system: string): number | undefined => figure(world, system, "no faults: mean, ms");
  expect(readme).toContain(`${mean(auto)} ms on average over six regions`);
  expect(readme).toContain(`takes ${mean(one)} ms and two copies ${mean(two)} ms`);
  const ratios = overheads.filter((row) => row["link"]?.endsWith("Mbit/s")).map((row) => row["ratio to bundle"]);
  expect(readme).toContain(`${ratios[0]} to ${ratios.at(-1)} times as long as a plain`);
});

test("README and the page on performance quote the ratios of its table", async () => {
  const lines = tableAfter(await page("docs/explanation/performance.md"), "### By line");
  const slow = lines.filter((row) => /^(20|50|100|200) /.test(row["line"]!));
  const spread = (rows: TableRows, column: string): string => {
    const ratios = rows.map((row) => Number(/= ([\d.]+)/.exec(row[column]!)?.[1]));
    return `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)} times as long`;
  };
  expect(await unwrapped("README.md")).toContain(`At 20 to 200 Mbit/s, 6 MB take ${spread(slow, "6 MB")} as one copy`);
  expect(await unwrapped("docs/explanation/performance.md")).toContain(
    `The first read of 100 kB takes ${spread(lines, "100 kB, first read")}`,
  );
});

test("pages quote the costs as they are computed", async () => {
  const costs = quotedCosts(100);
  expect(await unwrapped("docs/explanation/compare.md")).toContain(
    `has ${costs.pop} for the PoP and ${costs.s3} for buckets at S3, or ${costs.r2} at R2`,
  );
});

test("the table of storage in Compare has the prices of the table of costs", async () => {
  const rows = tableAfter(await page("docs/explanation/compare.md"), "## Cost of 1 TB");
  expect(rows.map((row) => Object.values(row))).toEqual(storageRows());
});
