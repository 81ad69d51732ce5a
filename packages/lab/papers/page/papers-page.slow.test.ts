import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { change, medianMs, PAGE, percent, prose, rowOf, run, scenario, table } from "./page.ts";
import type { Table } from "./page.ts";
import { HEAD, renderPage, SECTIONS, tablesOf } from "./sections.ts";

/** The cells of a table: formatting pads them. */
function cellsOf(text: string): string[][] {
  const lines = text.split("\n").filter((line) => !/^[|\s-]+$/.test(line));
  return lines.map((line) => line.split("|").map((cell) => cell.trim()));
}

function withoutTables(page: string): string {
  return page
    .split(/\n{2,}/)
    .filter((block) => !block.startsWith("|"))
    .join(" ")
    .replaceAll(/\s+/g, " ");
}

describe("the page of the papers' figures", () => {
  test("tables are Markdown with one line for each row", () => {
    expect(table(["a", "b"], [1, "x"], [2, "y"])).toBe("| a | b |\n| --- | --- |\n| 1 | x |\n| 2 | y |");
  });

  test("prose collapses white space and wraps at 120 columns", () => {
    const lines = prose`
      ${"word ".repeat(60)}
      ends`.split("\n");
    expect(lines.join(" ")).toBe(`${"word ".repeat(60)}ends`);
    expect(lines.map((line) => line.length)).toEqual([119, 119, 64]);
  });

  test("the page has the text of its sections, and a table wherever one of them has", async () => {
    const page = readFileSync(PAGE, "utf8");
    const tables = tablesOf(page);
    for (const write of Object.values(SECTIONS)) {
      const { title, parts } = write();
      expect(tables.get(title), title).toHaveLength(parts.filter((part) => typeof part !== "string").length);
    }
    expect(withoutTables(await renderPage(HEAD, tables))).toBe(withoutTables(page));
  });

  // The tables of little work; the others take minutes, and some hold measured times.
  test.each([
    ["agar", "byChunks"],
    ["agar", "skew"],
    ["ec-cache", "theorem1"],
    ["ec-cache", "byPopularity"],
    ["sprout", "evolution"],
    ["sprout", "placement"],
  ])("the page has the figures that the model gives: %s, %s", async (name, of) => {
    const { title, parts } = SECTIONS[name]!();
    const tables = parts.filter((part): part is Table => typeof part !== "string");
    const at = tables.findIndex((one) => one.name === of);
    expect(cellsOf(tablesOf(readFileSync(PAGE, "utf8")).get(title)![at]!)).toEqual(cellsOf(await tables[at]!()));
  });

  test("changes carry their sign", () => {
    expect([change(90, 100), change(110, 100), percent(0)]).toEqual(["-10.0%", "+10.0%", "+0.0%"]);
  });

  test("a scenario of the package is played with the fields that are changed, and all else as in the file", async () => {
    const changes = { requests: { perSecond: 2, count: 50 }, runs: 1, policies: [{ name: "backend" }] };
    expect((await scenario("agar-fitted.json", changes))["code"]).toEqual({ k: 9, m: 3 });
    expect(rowOf(await run("agar-fitted.json", changes), "backend")).toMatchObject({ reads: 50, meanMs: 896 });
  });

  test("a timed function is called as often beforehand", () => {
    let calls = 0;
    expect(medianMs(5, () => void calls++)).toBeGreaterThanOrEqual(0);
    expect(calls).toBe(10);
  });
});
