import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const PAGE = await readFile(join(ROOT, "docs/internals/guarantees.md"), "utf8");

test("every row of the guarantees page names a file of tests that exists", async () => {
  for (const row of rowsBetween("## What shows it", "## Beside other systems")) {
    const path = /`([^`]+\.(?:test|spec)\.ts)`/.exec(row)?.[1];
    expect(path, row).toBeDefined();
    expect(await readFile(join(ROOT, path!), "utf8"), path).toMatch(/\btest(?:\.(?:each|skipIf))?\(/);
  }
});

test("every event on the page about tests names a test that exists", async () => {
  const page = await readFile(join(ROOT, "docs/internals/testing.md"), "utf8");
  for (const row of rowsBetween("## Events and their tests", "## Rules", page)) {
    const [, , file, title] = row.split("|").map((cell) => cell.trim());
    expect(await readFile(join(ROOT, file!.replaceAll("`", "")), "utf8"), row).toContain(`"${title}"`);
  }
});

test("every fact about another system has a source", () => {
  for (const row of rowsBetween("## Beside other systems", "## What is not promised")) {
    const [, , , ...others] = row.split("|").slice(0, -1);
    for (const cell of others.map((text) => text.trim()).filter((text) => text !== "")) {
      const label = /^\[[^\]]+\]\[([^\]]+)\]$/.exec(cell)?.[1];
      expect(label, cell).toBeDefined();
      expect(PAGE).toMatch(new RegExp(`^\\[${label}\\]:\\s+https://`, "m"));
    }
  }
});

/** The rows of the table between two headings, without its head. */
function rowsBetween(start: string, end: string, page = PAGE): string[] {
  const table = page.slice(page.indexOf(start), page.indexOf(end));
  const rows = table
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2);
  expect(rows.length).toBeGreaterThan(5);
  return rows;
}
