/** The section of docs/internals/benchmarks.md about policies run for real. */
import type { Scenario, SimulationRow } from "@agarose/solver/simulator";
import type { Trace } from "@agarose/solver/traces";
import { summarize, table } from "@agarose/dev-world/statistics";
import type { Outcome, SystemSpec } from "./policies-world.ts";

export const BASELINE = "agar alone";
/** The system of the scenario that PoPs are without settings. */
const DEFAULTS = "defaults";

export type Simulated = Pick<SimulationRow, "meanMs" | "p99Ms" | "requestsPerRead">;

/** A system measured and simulated. */
export interface Compared {
  readonly system: SystemSpec;
  readonly real: Outcome;
  /** By seed. */
  readonly predicted: readonly Simulated[];
}

/** The compared runs. */
export interface Runs {
  readonly scenario: Scenario;
  readonly trace: Trace;
  readonly rows: readonly Compared[];
  /** Systems that ran side by side. */
  readonly atATime: number;
  /** The work of this machine for a read. */
  readonly workMs: number;
}

/** Returns method and tables. */
export function describeRuns({ scenario, trace, rows, atATime, workMs }: Runs): string {
  const baseline = rows.find(({ system }) => system.name === BASELINE) ?? rows[0]!;
  const perPeriod = Math.round(scenario.periodSeconds * scenario.requests.perSecond * scenario.pops.length);
  return [
    `Scenario \`${scenario.name}\`: ${trace.object.length} reads of ${trace.keys.length} objects at ` +
      `${scenario.pops.length} PoPs, in periods of ${scenario.periodSeconds} s with ${perPeriod} reads. *Real* is the ` +
      "service worker in Chromium, PoPs in workerd and buckets behind emulated links, one world per system, " +
      `${atATime} at the same time; regions have been probed before, and cold caches count. *Simulated* is the same ` +
      `trace through \`agarose lab simulate\`'s model, ${scenario.runs} times: the median, and for the 99th percentile ` +
      `the range too. A simulated read takes ${workMs.toFixed(0)} ms of work: so much longer than simulated without ` +
      "work do single reads take in the same places, with neither noise nor caches. " +
      `Changes are against *${baseline.system.name}*. *${DEFAULTS}* is what PoPs do without settings, for objects stored as ` +
      `RS(${scenario.code.k},${scenario.code.m}): \`code: "auto"\` would choose codes with fewer chunks. The rows that begin with it change one setting.`,
    table(
      [
        "system",
        "real mean, ms",
        "simulated",
        "ratio",
        "change",
        "real p99, ms",
        "simulated",
        "range",
        "ratio",
        "change",
      ],
      rows.map((row) => timesOf(row, baseline.real)),
    ),
    "The same without the first period, in which no cache holds anything:",
    table(
      ["system", "real mean, ms", "change", "real p99, ms", "change"],
      rows.map(({ system, real: { warm } }) => [
        system.name,
        warm.meanMs.toFixed(0),
        change(warm.meanMs, baseline.real.warm.meanMs),
        warm.p99Ms.toFixed(0),
        change(warm.p99Ms, baseline.real.warm.p99Ms),
      ]),
    ),
    "What the same reads asked for and fetched. *Extra* is how many chunks a read asks for beyond the k that it needs, " +
      "cached ones included. *Fetched* is what fills of the caches fetched for each byte that they filled; fills take " +
      "what reads through a PoP have just fetched, and these readers fetch by themselves.",
    table(
      ["system", "requests per read", "extra", "simulated extra", "fetched per byte filled"],
      rows.map(({ system, real, predicted }) => [
        system.name,
        real.requestsPerRead.toFixed(2),
        extra(real.requestsPerRead, scenario.code.k),
        extra(summarize(predicted.map((run) => run.requestsPerRead)).median, scenario.code.k),
        real.fetchedPerFilled?.toFixed(2) ?? "",
      ]),
    ),
  ].join("\n\n");
}

function timesOf({ system, real, predicted }: Compared, baseline: Outcome): string[] {
  const meanMs = summarize(predicted.map((run) => run.meanMs)).median;
  const p99s = predicted.map((run) => run.p99Ms);
  const p99Ms = summarize(p99s).median;
  return [
    system.name,
    real.meanMs.toFixed(0),
    meanMs.toFixed(0),
    (real.meanMs / meanMs).toFixed(2),
    change(real.meanMs, baseline.meanMs),
    real.p99Ms.toFixed(0),
    p99Ms.toFixed(0),
    `${Math.min(...p99s).toFixed(0)} to ${Math.max(...p99s).toFixed(0)}`,
    (real.p99Ms / p99Ms).toFixed(2),
    change(real.p99Ms, baseline.p99Ms),
  ];
}

function change(value: number, base: number): string {
  return `${value < base ? "-" : "+"}${Math.abs(100 * (value / base - 1)).toFixed(0)}%`;
}

function extra(requests: number, k: number): string {
  return `${(100 * (requests / k - 1)).toFixed(1)}%`;
}
