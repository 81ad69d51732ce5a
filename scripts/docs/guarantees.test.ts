import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const PAGE = await readFile(join(ROOT, "docs/internals/guarantees.md"), "utf8");

test("every row of the guarantees page names a file of tests that exists", async () => {
  for (const row of rowsBetween("## Tests of each promise", "## Not promised")) {
    const path = /`([^`]+\.(?:test|spec)\.ts)`/.exec(row)?.[1];
    expect(path, row).toBeDefined();
    expect(await readFile(join(ROOT, path!), "utf8"), path).toMatch(/\btest(?:\.(?:each|skipIf))?\(/);
  }
});

/** The rows of the table between two headings, without its head. */
function rowsBetween(start: string, end: string): string[] {
  const table = PAGE.slice(PAGE.indexOf(start), PAGE.indexOf(end));
  const rows = table
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2);
  expect(rows.length).toBeGreaterThan(5);
  return rows;
}
