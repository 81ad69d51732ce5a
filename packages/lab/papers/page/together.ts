/** All five papers' ideas in one system: a combination that none of them has. */
import { change, ms, run, scenario, share, table, type Json, type Tables } from "./page.ts";
import type { SimulationRow } from "@agarose/solver/internal/simulator/simulate";

export const together: Tables = { systems, ablation, regionStragglers };

const ALL = { policy: "adaptive", read: { delta: 1, cachedChunks: "functional" }, joint: true };

async function ablation(): Promise<string> {
  const rows = (await run("ablation.json")).filter((row) => row.pop === "all");
  const all = rows[0]!;
  return table(["system", ...FIGURES], ...rows.map((row) => [row.name, ...figures(row, all)]));
}

async function regionStragglers(): Promise<string> {
  const { noise } = await scenario("five-together.json");
  const changes = { code: { k: 6, m: 3 }, noise: { ...(noise as Json), stragglersShared: "region" } };
  const everything = { ...ALL.read, delta: 6 };
  const charged = await run("five-together.json", { ...changes, systems: [AGAR, { ...ALL, name: "all" }] });
  const free = await run("five-together.json", {
    ...changes,
    load: { utilization: 0 },
    systems: [
      { ...ALL, name: "all, extra requests free" },
      { ...ALL, name: "every chunk asked for, free", read: everything },
      { ...ALL, name: "the same, popularity known", policy: "clairvoyant", read: everything },
    ],
  });
  const rows = [...charged, ...free].filter((row) => row.pop === "all");
  const agar = rows[0]!;
  return table(["system", ...FIGURES], ...rows.map((row) => [row.name, ...figures(row, agar)]));
}

const AGAR = { name: "agar alone", policy: "agar", read: { delta: 0, cachedChunks: "exact" }, joint: false };

async function systems(): Promise<string> {
  const rows = (await run("five-together.json")).filter((row) => row.pop === "all");
  const agar = rows[0]!;
  return table(
    ["system", ...FIGURES, "chunks from peers"],
    ...rows.map((row) => [row.name, ...figures(row, agar), share(row.peerChunkRatio)]),
  );
}

/** Heads of the columns that `figures` fills. */
const FIGURES = ["mean ms", "change", "p99 ms", "change", "requests per read"];

/** The mean and the p99 of a system, each beside its change against `base`, and its requests per read. */
function figures(row: SimulationRow, base: SimulationRow): string[] {
  return [
    ms(row.meanMs),
    change(row.meanMs, base.meanMs),
    ms(row.p99Ms),
    change(row.p99Ms, base.p99Ms),
    row.requestsPerRead.toFixed(2),
  ];
}
