/** Simulation results as text. */
import type { Scenario, SimulationRow } from "@agarose/solver/simulator";

/** Column title, width, and what it shows. */
const COLUMNS: readonly [string, number, (row: SimulationRow) => string][] = [
  ["pop", 14, (row) => row.pop],
  ["mean ms", 9, (row) => row.meanMs.toFixed(1)],
  ["p50", 8, (row) => row.p50Ms.toFixed(0)],
  ["p95", 8, (row) => row.p95Ms.toFixed(0)],
  ["p99", 8, (row) => row.p99Ms.toFixed(0)],
  ["hit", 7, (row) => percent(row.hitRatio)],
  ["full hit", 9, (row) => percent(row.fullHitRatio)],
  ["chunk hit", 10, (row) => percent(row.chunkHitRatio)],
  ["req/read", 9, (row) => row.requestsPerRead.toFixed(2)],
  ["writes", 8, (row) => row.writes.toFixed(0)],
  ["solve ms", 9, (row) => row.solveMs.toFixed(3)],
  ["loss", 8, (row) => (row.lossPercent === undefined ? "-" : `${row.lossPercent.toFixed(1)}%`)],
];

/** One line per system and PoP; with several PoPs the line of all of them comes last. */
export function tableOf(scenario: Scenario, rows: readonly SimulationRow[]): string[] {
  const shown = scenario.pops.length === 1 ? rows.filter((row) => row.pop === "all") : rows;
  const nameWidth = Math.max(...shown.map((row) => row.name.length), 6) + 2;
  // Loss is measured against an oracle, which logs do not have.
  const columns = COLUMNS.filter(([name]) => name !== "loss" || shown.some((row) => row.lossPercent !== undefined));
  const title = "policy".padEnd(nameWidth) + columns.map(([name, width]) => name.padStart(width)).join("");
  const lines = shown.map(
    (row) => row.name.padEnd(nameWidth) + columns.map(([, width, show]) => show(row).padStart(width)).join(""),
  );
  return [`${scenario.name}: ${scenario.about}; ${cadenceOf(scenario)}`, title, ...lines, ...rows.flatMap(notesOf)];
}

function cadenceOf({ decide, exchangeSeconds, periodSeconds }: Scenario): string {
  if (decide === "request") return "caches change at each request";
  return `caches change every ${Math.min(exchangeSeconds, periodSeconds)} s, and KV is written every ${periodSeconds} s`;
}

function notesOf({ name, pop, failedReads, messages = 0 }: SimulationRow): string[] {
  if (pop !== "all") return [];
  const notes: string[] = [];
  if (failedReads > 0) notes.push(`${name}: ${failedReads} reads could not be completed`);
  if (messages > 0) notes.push(`${name}: ${messages.toFixed(0)} messages between PoPs`);
  return notes;
}

function percent(ratio: number): string {
  return `${(100 * ratio).toFixed(1)}%`;
}
