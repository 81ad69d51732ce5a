import { describe, expect, test } from "vitest";
import { change, medianMs, percent, rowOf, run, scenario, table } from "./page.ts";

describe("the page of the papers' figures", () => {
  test("tables are Markdown with one line for each row", () => {
    expect(table(["a", "b"], [1, "x"], [2, "y"])).toBe("| a | b |\n| --- | --- |\n| 1 | x |\n| 2 | y |");
  });

  test("changes carry their sign", () => {
    expect([change(90, 100), change(110, 100), percent(0)]).toEqual(["-10.0%", "+10.0%", "+0.0%"]);
  });

  test("a scenario of the package is played with the fields that are changed, and all else as in the file", async () => {
    const changes = { requests: { perSecond: 2, count: 50 }, runs: 1, policies: [{ name: "backend" }] };
    expect((await scenario("agar-fitted.json", changes))["code"]).toEqual({ k: 9, m: 3 });
    expect(rowOf(await run("agar-fitted.json", changes), "backend")).toMatchObject({ reads: 50, meanMs: 646 });
  });

  test("a timed function is called as often beforehand", () => {
    let calls = 0;
    expect(medianMs(5, () => void calls++)).toBeGreaterThanOrEqual(0);
    expect(calls).toBe(10);
  });
});
