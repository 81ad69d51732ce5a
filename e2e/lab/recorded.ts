/**
 * Plots of real reads in Chromium over the emulated WAN, from the tables that `npm run bench` keeps in the documents.
 */
import { numberOf, tableAfter, type TableRows } from "../../scripts/docs/markdown-table.ts";
import { QUESTIONS, type Plot } from "./plots.ts";

const POLICIES = "policies";
const WORLD_OF_POLICIES = "three-pops";
const COMPARISONS = { continental: "comparison-continental", "table-i": "comparison-table-i" };

/** The benchmarks that the plots come from. */
export const BENCHES: readonly string[] = [POLICIES, ...Object.values(COMPARISONS)];

/** Returns the plots of what docs/internals/benchmarks.md has on record; a benchmark that never ran has none. */
export function recordedPlots(benchmarks: string): Plot[] {
  const section = sectionOf(benchmarks, POLICIES);
  const policies = section === undefined ? [] : policyPlots(tableAfter(section, "## "), originOf(section, POLICIES));
  const comparisons = Object.entries(COMPARISONS).flatMap(([world, bench]) => {
    const own = sectionOf(benchmarks, bench);
    return own === undefined ? [] : comparisonPlots(tableAfter(own, "## "), world, originOf(own, bench));
  });
  return [...policies, ...comparisons];
}

/** What browsers measured, and what the simulator predicts for the same trace. */
function policyPlots(table: TableRows, origin: string): Plot[] {
  const ways = [
    { way: "real", mean: "real mean, ms", p99: "real p99, ms" },
    { way: "simulated", mean: "simulated", p99: "simulated 2" },
  ] as const;
  return ways.map(({ way, mean, p99 }) => ({
    question: QUESTIONS.policies,
    way,
    world: WORLD_OF_POLICIES,
    fault: "2% stragglers",
    noteHead: "real over simulated mean",
    rows: table.map((row) => ({
      system: row["system"] ?? "",
      meanMs: numberOf(row, mean),
      p99Ms: numberOf(row, p99),
      note: row["ratio"] ?? "",
    })),
    origin,
  }));
}

/** The rows of a comparison are named `fault: system`. */
function comparisonPlots(table: TableRows, world: string, origin: string): Plot[] {
  const byFault = Map.groupBy(table, (row) => (row[""] ?? "").split(": ")[0]!);
  return [...byFault].map(([fault, rows]) => ({
    question: QUESTIONS.layouts,
    way: "real",
    world,
    fault,
    noteHead: "failed reads",
    rows: rows.map((row) => ({
      system: (row[""] ?? "").slice(`${fault}: `.length),
      meanMs: numberOf(row, "mean, ms"),
      p99Ms: numberOf(row, "p99, ms"),
      note: row["failed"] ?? "",
    })),
    origin,
  }));
}

function sectionOf(benchmarks: string, bench: string): string | undefined {
  const [begin, end] = [`<!-- bench: ${bench} -->`, `<!-- end: ${bench} -->`];
  const from = benchmarks.indexOf(begin);
  return from < 0 ? undefined : benchmarks.slice(from, benchmarks.indexOf(end));
}

function originOf(section: string, bench: string): string {
  const measured = /^Measured [^]*?\.$/m.exec(section)?.[0].replaceAll(/\s+/g, " ") ?? "";
  return `npm run bench -- ${bench}. ${measured}`.trim();
}
