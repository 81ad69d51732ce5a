import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const PAGE = await readFile(join(ROOT, "docs/explanation/guarantees.md"), "utf8");

test("every row of the guarantees page names a file of tests that exists", async () => {
  const table = PAGE.slice(PAGE.indexOf("## What shows it"), PAGE.indexOf("## Beside other systems"));
  const rows = table
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2);
  expect(rows.length).toBeGreaterThan(5);
  for (const row of rows) {
    const path = /`([^`]+\.(?:test|spec)\.ts)`/.exec(row)?.[1];
    expect(path, row).toBeDefined();
    expect(await readFile(join(ROOT, path!), "utf8"), path).toMatch(/\btest(?:\.each)?\(/);
  }
});

test("every fact about another system has a source", () => {
  const table = PAGE.slice(PAGE.indexOf("## Beside other systems"), PAGE.indexOf("## What is not promised"));
  const rows = table
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2);
  expect(rows.length).toBeGreaterThan(5);
  for (const row of rows) {
    const [, , , ...others] = row.split("|").slice(0, -1);
    for (const cell of others.map((text) => text.trim()).filter((text) => text !== "")) {
      const label = /^\[[^\]]+\]\[([^\]]+)\]$/.exec(cell)?.[1];
      expect(label, cell).toBeDefined();
      expect(PAGE).toMatch(new RegExp(`^\\[${label}\\]:\\s+https://`, "m"));
    }
  }
});
