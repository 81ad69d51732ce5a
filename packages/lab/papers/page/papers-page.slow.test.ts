import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { change, medianMs, PAGE, percent, rowOf, run, scenario, table } from "./page.ts";
import { TABLES, tablesOf, withTables } from "./tables.ts";

const page = readFileSync(PAGE, "utf8");

/** The cells of a table: formatting pads them. */
function cellsOf(text: string): string[][] {
  const lines = text.split("\n").filter((line) => !/^[|\s-]+$/.test(line));
  return lines.map((line) => line.split("|").map((cell) => cell.trim()));
}

describe("the page of the papers' figures", () => {
  test("tables are Markdown with one line for each row", () => {
    expect(table(["a", "b"], [1, "x"], [2, "y"])).toBe("| a | b |\n| --- | --- |\n| 1 | x |\n| 2 | y |");
  });

  test("every table has a mark on the page, and every mark a table", () => {
    expect([...tablesOf(page).keys()]).toEqual(Object.keys(TABLES));
  });

  test("a table is replaced below its mark, and all else stays", () => {
    const before = "a\n\n<!-- table: x.y -->\n\n| 1 |\n\n<!-- table: x.z -->\n\n| 2 |\n\nb\n";
    expect(withTables(before, new Map([["x.z", "| 3 |"]]))).toBe(before.replace("| 2 |", "| 3 |"));
  });

  // The tables of little work; the others take minutes, and some hold measured times.
  test.each(["agar.byChunks", "ec-cache.byPopularity", "sprout.evolution", "sprout.placement"])(
    "the page has the figures that the model gives: %s",
    async (name) => {
      expect(cellsOf(tablesOf(page).get(name)!.trim())).toEqual(cellsOf(await TABLES[name]!()));
    },
  );

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
