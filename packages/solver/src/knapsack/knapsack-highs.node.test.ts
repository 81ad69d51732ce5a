/** An independent mixed-integer solver must find the same optimum on the hard families. */
import { createRequire } from "node:module";
import { describe, expect, test } from "vitest";
import { solveKnapsack, type KnapsackInstance } from "./index.ts";
import { seededRandom } from "../random.ts";
import { drawInstance, FAMILIES } from "../../test/knapsack-families.ts";

/** A CommonJS module whose types are written for a compiler that makes a default export of it. */
const loadHighs = createRequire(import.meta.url)("highs") as typeof import("highs").default;

const HARD = [
  "ties in float density",
  "strongly correlated, cumulative",
  "strongly correlated, single steps",
  "even weights",
  "convex trap",
  "random convex trap",
];

/** The instance in CPLEX LP format: one binary variable per option. */
function toLp({ capacity, start, weights, values }: KnapsackInstance): string {
  const all = Array.from(weights.keys());
  const term = (coefficient: number, j: number): string => `${coefficient} x${j}`;
  const lines = ["Maximize", ` obj: ${all.map((j) => term(values[j]!, j)).join(" + ")}`, "Subject To"];
  lines.push(` room: ${all.map((j) => term(weights[j]!, j)).join(" + ")} <= ${capacity}`);
  for (let i = 0; i + 1 < start.length; i++) {
    const own = all.slice(start[i]!, start[i + 1]!);
    lines.push(` one${i}: ${own.map((j) => `x${j}`).join(" + ")} <= 1`);
  }
  return [...lines, "Binary", ` ${all.map((j) => `x${j}`).join(" ")}`, "End"].join("\n");
}

describe("solveKnapsack against HiGHS", () => {
  test.each(HARD)("the same optimum: %s", async (family) => {
    const highs = await loadHighs();
    for (let seed = 1; seed <= 6; seed++) {
      const random = seededRandom(seed);
      const size = { objects: 4 + random.integer(12), options: 1 + random.integer(4), weightMax: 50, fill: 0.4 };
      const instance = drawInstance(FAMILIES[family]!, size, random);
      const solution = highs.solve(toLp(instance), { mip_rel_gap: 0, mip_abs_gap: 0 });
      expect(solution.Status).toBe("Optimal");
      const ours = solveKnapsack(instance);
      expect(ours.optimal).toBe(true);
      expect(Math.abs(ours.value - solution.ObjectiveValue), `seed ${seed}`).toBeLessThan(1e-6 * (1 + ours.value));
    }
  });
});
