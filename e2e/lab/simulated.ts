/** Plots of the simulator: every policy, the ablation, and layouts under faults. Equal code gives equal plots. */
import { fileURLToPath } from "node:url";
import { loadScenario } from "agarose";
import { simulate, type Scenario, type SimulationRow } from "@agarose/solver/simulator";
import { QUESTIONS, type Plot } from "./plots.ts";

/** How much is simulated. */
export interface SimulationSize {
  /** One world a question, and few requests. */
  readonly quick: boolean;
  readonly progress: (line: string) => void;
}

const POLICY_WORLDS = ["stationary", "drift", "shift", "flat", "mixed-sizes", "region-trouble"];
const LAYOUT_WORLDS = ["continental", "five-together"];
/** Layouts differ by more than the noise of so many reads. */
const LAYOUT_SECONDS = 600;
const QUICK_SECONDS = 60;
const NO_FAULTS = "no faults";

/** The faults of the benchmark `comparison`, with its names. */
const FAULTS: Readonly<Record<string, (scenario: Scenario) => Partial<Scenario>>> = {
  [NO_FAULTS]: (scenario) => ({ noise: withoutStragglers(scenario) }),
  "2% stragglers": () => ({}),
  "nearest region down": (scenario) => ({
    noise: withoutStragglers(scenario),
    events: [{ atSeconds: 0, forSeconds: Infinity, region: nearestRegion(scenario), latencyFactor: 1, down: true }],
  }),
};

/** Simulates one run of each world. Takes some minutes, and seconds with `quick`. */
export async function simulatedPlots({ quick, progress }: SimulationSize): Promise<Plot[]> {
  const some = (names: readonly string[]): readonly string[] => (quick ? names.slice(0, 1) : names);
  const seconds = quick ? QUICK_SECONDS : undefined;
  const plots: Plot[] = [];
  const add = (plot: Plot): void => {
    plots.push(plot);
    progress(`${plot.question} ${plot.world}, ${plot.fault}`);
  };
  for (const name of some(POLICY_WORLDS)) {
    const noteHead = "loss against the oracle";
    const note = ({ lossPercent }: SimulationRow): string => `${(lossPercent ?? 0).toFixed(1)}%`;
    const fault = name === "region-trouble" ? "a region slow, another down" : NO_FAULTS;
    add(plotOf(await worldOf(name, seconds), { question: QUESTIONS.policies, fault, noteHead, note }));
  }
  const whole = await worldOf("ablation", seconds);
  const note = (row: SimulationRow, all: SimulationRow): string =>
    row === all ? "" : `${row.meanMs < all.meanMs ? "" : "+"}${(100 * (row.meanMs / all.meanMs - 1)).toFixed(1)}%`;
  add(plotOf(whole, { question: QUESTIONS.ablation, fault: "2% stragglers", noteHead: "change of the mean", note }));
  const { systems } = await worldOf("continental");
  for (const name of some(LAYOUT_WORLDS)) {
    const scenario = { ...(await worldOf(name, seconds ?? LAYOUT_SECONDS)), systems };
    for (const [fault, changes] of Object.entries(FAULTS)) {
      const failed = ({ failedReads, reads }: SimulationRow): string => `${failedReads} of ${reads + failedReads}`;
      const about = { question: QUESTIONS.layouts, fault, noteHead: "failed reads", note: failed };
      add(plotOf({ ...scenario, ...changes(scenario) }, about));
    }
  }
  return plots;
}

function plotOf(
  scenario: Scenario,
  {
    note,
    ...about
  }: Pick<Plot, "question" | "fault" | "noteHead"> & {
    readonly note: (row: SimulationRow, first: SimulationRow) => string;
  },
): Plot {
  const rows = simulate(scenario).filter(({ pop }) => pop === "all");
  return {
    ...about,
    way: "simulated",
    world: scenario.name,
    rows: rows.map((row) => ({
      system: row.name,
      // A mean of no reads is no time.
      meanMs: row.meanMs || undefined,
      p99Ms: row.p99Ms || undefined,
      note: note(row, rows[0]!),
    })),
    origin: `packages/solver/scenarios/${scenario.name}.json, seed ${scenario.seed}, one run of ${rows[0]!.reads} reads.`,
  };
}

/** A scenario of the solver with one run, and with so many seconds of requests. */
async function worldOf(name: string, seconds?: number): Promise<Scenario> {
  const file = fileURLToPath(import.meta.resolve(`@agarose/solver/scenarios/${name}.json`));
  const scenario = await loadScenario(file, { runs: 1 });
  const { requests } = scenario;
  const count = Math.min(requests.count, Math.round((seconds ?? Infinity) * requests.perSecond));
  return { ...scenario, requests: { ...requests, count } };
}

function withoutStragglers({ noise }: Scenario): Scenario["noise"] {
  return { ...noise, stragglerProbability: 0 };
}

/** From the first PoP. */
function nearestRegion({ pops }: Scenario): string {
  const latencies = Object.entries(pops[0]!.regionLatencyMs);
  return latencies.toSorted(([, a], [, b]) => a - b)[0]![0];
}
