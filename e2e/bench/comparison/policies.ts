/**
 * The defaults run for real against what the simulator predicts for it: one trace of reads at three PoPs, through the
 * service worker in Chromium over emulated links, one local world for each system. As many systems run at a time as
 * memory and cores allow.
 */
import { availableParallelism, freemem } from "node:os";
import type { Browser } from "@playwright/test";
import { seededRandom } from "@agarose/solver/random";
import { simulate, type Scenario } from "@agarose/solver/simulator";
import { TraceBuilder, type Trace } from "@agarose/solver/traces";
import { loadScenario } from "agarose";
import { describeMachine } from "@agarose/dev-world/machine";
import type { Bench, BenchOptions } from "../bench.ts";
import { startBrowser } from "../lib/browser.ts";
import { describeRuns, type Compared, type Simulated } from "./policies-report.ts";
import { runForReal, runWithoutNoise, SCENARIO, type Outcome } from "./policies-world.ts";

const QUICK_READS = 10;
/** Read once each to measure the work of this machine. */
const WORK_OBJECTS = 40;
/** Bytes that one page holds: a megabyte of each read stays in Chromium. */
const PAGE_BYTES = 150e6;
const READ_BYTES = 1.2e6;
/** Systems mostly wait. More of them on a core slow each other down. */
const SYSTEMS_PER_CORE = 2;

/** The defaults, and the defaults without each idea, against `agar alone`: half an hour on two cores. */
export const policies: Bench = { name: "policies", title: "The defaults run for real", run: compare };

async function compare(options: BenchOptions): Promise<string> {
  const loaded = await loadScenario(SCENARIO);
  const scenario: Scenario = { ...loaded, systems: options.quick ? loaded.systems.slice(-3) : loaded.systems };
  const trace = drawTrace(scenario, options.quick ? QUICK_READS : scenario.requests.count);
  const size = batchSize(scenario, trace);
  const minutes = (trace.seconds.at(-1)! / 60) * Math.ceil(scenario.systems.length / size);
  options.progress(`${scenario.systems.length} systems, ${size} at a time: ${Math.ceil(minutes)} minutes of reads`);
  const workMs = await measureWork(scenario, size);
  options.progress(`${workMs.toFixed(0)} ms of a read are work of this machine`);
  const predicted = predict({ ...scenario, client: { ...scenario.client, overheadMs: workMs } }, trace);
  const rows: Compared[] = [];
  let version = "";
  for (let from = 0; from < scenario.systems.length; from += size) {
    const batch = scenario.systems.slice(from, from + size);
    // A browser of its own for each batch, because Chromium keeps the memory that it has allocated.
    const chromium = await startBrowser();
    version = chromium.version();
    try {
      for (const [i, real] of (await runBatch(chromium, scenario, batch, trace, options)).entries()) {
        rows.push({ system: batch[i]!, real, predicted: predicted[batch[i]!.name]! });
      }
    } finally {
      await chromium.close();
    }
  }
  return `${describeRuns({ scenario, trace, rows, atATime: size, workMs })}\n\n${describeMachine(version)}`;
}

/**
 * * The work of this machine for a read: by how much reads without noise and caches take longer than simulated ones
 * that take no work. As many worlds run side by side as there are systems in a batch.
 */
async function measureWork(scenario: Scenario, size: number): Promise<number> {
  const browser = await startBrowser();
  const trace = listTrace(scenario, WORK_OBJECTS);
  const quiet = {
    ...scenario,
    runs: 1,
    noise: { ...scenario.noise, lognormalSigma: 0, stragglerProbability: 0 },
    client: { ...scenario.client, overheadMs: 0 },
    systems: [{ ...scenario.systems[0]!, policy: "backend" as const, joint: false }],
  };
  const { meanMs } = simulate(quiet, { trace }).find(({ pop }) => pop === "all")!;
  try {
    const real = await Promise.all(Array.from({ length: size }, () => runWithoutNoise(browser, trace)));
    return real.reduce((sum, ms) => sum + ms, 0) / real.length - meanMs;
  } finally {
    await browser.close();
  }
}

/** Each of so many objects once, at the first PoP. */
function listTrace({ objects, pops }: Scenario, count: number): Trace {
  const builder = new TraceBuilder();
  builder.begin("the list", "csv");
  const { name: pop } = pops[0]!;
  for (let i = 0; i < count; i++) builder.add({ seconds: i, key: `objects/${i}`, bytes: objects.bytes, pop });
  return builder.finish();
}

/** Waits for all systems, also after one has failed, so that no world is left behind. */
async function runBatch(
  browser: Browser,
  scenario: Scenario,
  batch: Scenario["systems"],
  trace: Trace,
  options: BenchOptions,
): Promise<Outcome[]> {
  const runs = await Promise.allSettled(
    batch.map((system) => runForReal({ browser, scenario, system, trace, progress: options.progress })),
  );
  return runs.map((run) => {
    if (run.status === "rejected") throw run.reason;
    return run.value;
  });
}

function batchSize({ systems, pops }: Scenario, trace: Trace): number {
  const bytes = pops.length * PAGE_BYTES + trace.object.length * READ_BYTES;
  const inMemory = Math.floor(freemem() / bytes);
  const most = Math.max(1, Math.min(inMemory, SYSTEMS_PER_CORE * availableParallelism()));
  // Batches of one size, so that no system has the machine for itself.
  return Math.ceil(systems.length / Math.ceil(systems.length / most));
}

/** The same trace simulated with one seed after the other, by system: what is measured is one run, too. */
function predict(scenario: Scenario, trace: Trace): Partial<Record<string, Simulated[]>> {
  const seeds = Array.from({ length: scenario.runs }, (_, i) => scenario.seed + i);
  const rows = seeds.flatMap((seed) => simulate({ ...scenario, runs: 1, seed }, { trace }));
  return Object.groupBy(
    rows.filter(({ pop }) => pop === "all"),
    ({ name }) => name,
  );
}

/** Reads per PoP in turn, each PoP by its own Zipf draws of the same law. */
function drawTrace({ objects, pops, popularity, requests }: Scenario, readsPerPop: number): Trace {
  if (popularity.type !== "zipf") throw new Error(`the scenario draws by ${popularity.type}: zipf is expected`);
  const { exponent } = popularity;
  const random = seededRandom(1);
  const weights = Array.from({ length: objects.count }, (_, rank) => (rank + 1) ** -exponent);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const draw = (): number => {
    let left = random.next() * total;
    return Math.max(
      0,
      weights.findIndex((weight) => (left -= weight) <= 0),
    );
  };
  const builder = new TraceBuilder();
  builder.begin("the drawn reads", "csv");
  for (let read = 0; read < readsPerPop; read++) {
    for (const { name } of pops) {
      const seconds = read / requests.perSecond;
      builder.add({ seconds, key: `objects/${draw()}`, bytes: objects.bytes, pop: name });
    }
  }
  return builder.finish();
}
