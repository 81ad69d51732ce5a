/** The parts of the tables of docs/internals/papers.md: scenarios played, numbers and tables as text. */
import { readFileSync } from "node:fs";
import { parseScenario, resolveExtends } from "@agarose/solver/internal/simulator/scenario/scenario";
import { simulate, type SimulationRow } from "@agarose/solver/internal/simulator/simulate";

export type Json = Record<string, unknown>;
export type Cells = readonly (string | number)[];

/** The page that has these tables. */
export const PAGE = new URL("../../../../docs/internals/papers.md", import.meta.url);

const FOLDER = new URL("../../../solver/scenarios/", import.meta.url);

/**
 * A scenario of this package as JSON, with what it extends; `changes` replace top-level fields. The papers' caches
 * change at each request, and those of PoPs that place together once a period.
 */
export async function scenario(name: string, changes: Json = {}): Promise<Json> {
  return { decide: "request", ...((await resolveExtends(await load(name), load)) as Json), ...changes };
}

async function load(name: string): Promise<unknown> {
  return JSON.parse(readFileSync(new URL(name, FOLDER), "utf8"));
}

/** Simulates a scenario of this package, with the same changes. */
export async function run(name: string, changes: Json = {}): Promise<SimulationRow[]> {
  return simulate(parseScenario(await scenario(name, changes)), { now: () => performance.now() });
}

/** The row of a system at a PoP. */
export function rowOf(rows: readonly SimulationRow[], name: string, pop = "all"): SimulationRow {
  return rows.find((row) => row.name === name && row.pop === pop)!;
}

/** The mean latency of a system at a PoP, in ms. */
export function meanOf(rows: readonly SimulationRow[], name: string, pop = "all"): number {
  return rowOf(rows, name, pop).meanMs;
}

/** A Markdown table. */
export function table(head: Cells, ...body: readonly Cells[]): string {
  const line = (cells: Cells): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...body.map(line)].join("\n");
}

/** The tables of a section by name, each computed when it is wanted. */
export type Tables = Readonly<Record<string, () => string | Promise<string>>>;

export const ms = (value: number): string => value.toFixed(0);
export const percent = (value: number): string => `${value >= 0 ? "+" : ""}${value.toFixed(1)}%`;
export const share = (value: number): string => `${(100 * value).toFixed(1)}%`;
export const change = (value: number, from: number): string => percent(100 * (value / from - 1));

/** Median duration of `calls` calls, in ms, after as many that warm up. */
export function medianMs(calls: number, call: () => void): number {
  for (let n = 0; n < calls; n++) call();
  const times = Array.from({ length: calls }, () => {
    const begun = performance.now();
    call();
    return performance.now() - begun;
  });
  return times.toSorted((a, b) => a - b)[calls >> 1]!;
}
