/** The table of the README is computed. */
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { ASSUMED, walkCosts } from "../test/walk-costs.ts";

const README = new URL("../README.md", import.meta.url);
const [OBJECTS_PER_PART, REGIONS, RANGES_PER_CHILD, RANGES_MAX] = [1_000, 6, 16, 1_024];

/** Two digits that count. */
const rounded = (value: number): string => Number(value.toPrecision(2)).toLocaleString("en");

test("hours and dollars in the README are those of the arithmetic", async () => {
  const readme = await readFile(README, "utf8");
  const rows = [
    [1e7, 16],
    [1e9, 16],
    [1e9, 64],
  ].map(([objects, concurrency]) => {
    const ranges = Math.min(RANGES_MAX, RANGES_PER_CHILD * concurrency!);
    const shape = { objects: objects!, objectsPerPart: OBJECTS_PER_PART, regions: REGIONS, ranges };
    const { parts, lists, hours, workers, r2, s3 } = walkCosts(shape, concurrency!);
    const dollars = [workers, r2, s3].map((usd) => `$${rounded(usd)}`);
    const cells = [rounded(objects!), String(concurrency), rounded(parts / ranges), rounded(lists), rounded(hours)];
    return [...cells, ...dollars];
  });
  const table = readme.split("\n").map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  for (const row of rows) expect(table).toContainEqual(row);
  expect(readme).toContain(`${ASSUMED.listMs} ms`);
  expect(readme).toContain(`${(ASSUMED.cpuMsPerRegion * REGIONS).toFixed(1)} ms`);
});
