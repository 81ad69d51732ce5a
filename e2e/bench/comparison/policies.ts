/**
 * Every policy run for real against what the simulator predicts for it: one trace of reads at three PoPs, through the
 * service worker in Chromium over emulated links, one local world for each system, all of them side by side.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "@playwright/test";
import { simulate, TraceBuilder, type Scenario, type Trace } from "@agarose/solver";
import { loadScenario } from "agarose";
import { seededRandom } from "@agarose/solver";
import { openApp, takeServiceWorker } from "../../fixtures/app.ts";
import { LocalWorld } from "@agarose/dev-world/client";
import type { Bench, BenchOptions } from "../bench.ts";
import { startBrowser } from "../lib/browser.ts";
import { describeMachine } from "@agarose/dev-world/machine";
import { summarize, table } from "@agarose/dev-world/statistics";

type SystemSpec = Scenario["systems"][number];

const SCENARIO = fileURLToPath(import.meta.resolve("@agarose/solver/scenarios/three-pops.json"));
const BASELINE = "agar alone";
/** The system of the scenario that PoPs are without settings. */
const DEFAULTS = "all five";
const PROBE_PERIODS = 5;

/** What the reads of one system took. */
interface Outcome {
  readonly meanMs: number;
  readonly p99Ms: number;
}

export const policies: Bench = {
  name: "policies",
  title: "Policies run for real, and as simulated",
  async run(options) {
    const scenario = await loadScenario(SCENARIO);
    const trace = drawTrace(scenario, options.quick ? 10 : scenario.requests.count);
    const systems = options.quick ? scenario.systems.slice(-3) : scenario.systems;
    const predicted = predict(scenario, trace);
    const chromium = await startBrowser();
    try {
      const runs = await Promise.allSettled(
        systems.map((system) => runForReal(chromium.browser, scenario, system, trace, options)),
      );
      const rows = runs.map((run, i) => {
        if (run.status === "rejected") throw run.reason;
        const system = systems[i]!;
        return { system, real: run.value, predicted: predicted[system.name]! };
      });
      return describe(scenario, trace, rows, chromium.browser.version());
    } finally {
      await chromium.close();
    }
  },
};

/** The same trace simulated with one seed after the other, by system: what is measured is one run, too. */
function predict(scenario: Scenario, trace: Trace): Partial<Record<string, Outcome[]>> {
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
  const builder = new TraceBuilder({ format: "csv" });
  builder.add("seconds,key,bytes,pop");
  for (let read = 0; read < readsPerPop; read++) {
    for (const { name } of pops) {
      builder.add(`${read / requests.perSecond},objects/${draw()},${String(objects.bytes)},${name}`);
    }
  }
  return builder.finish();
}

/**
 * The trace's reads by period, those of each period PoP by PoP, another one first each time: the world has one client,
 * which moves from one to the next, and a page that measured its way while the client is elsewhere would choose the
 * wrong PoP. What a period counts stays the same.
 */
function inBatches(trace: Trace, { pops, periodSeconds }: Scenario): number[][] {
  const periods = Map.groupBy(trace.object.keys(), (read) => Math.floor(trace.seconds[read]! / periodSeconds));
  return [...periods].map(([period, reads]) => {
    const batch = (read: number): number =>
      (pops.findIndex(({ name }) => name === trace.pop[read]) + period) % pops.length;
    return reads.toSorted((a, b) => batch(a) - batch(b) || a - b);
  });
}

async function untilMs(ms: number): Promise<void> {
  const waitMs = ms - performance.now();
  if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
}

async function runForReal(
  browser: Browser,
  scenario: Scenario,
  system: SystemSpec,
  trace: Trace,
  { progress }: BenchOptions,
): Promise<Outcome> {
  const world = await LocalWorld.start({ geography: SCENARIO, variables: popVariables(system) });
  const contexts = [];
  try {
    await putObjects(world, trace);
    const pages = new Map<string, Page>();
    for (const { name } of world.pops) {
      await world.client.near(name);
      const context = await browser.newContext();
      contexts.push(context);
      const page = await openApp(context, world);
      // A client of this PoP: that clients find the nearest one is measured elsewhere. What its peers hold, it asks of
      // them.
      const peers = system.joint ? world.pops.filter((pop) => pop.name !== name) : [];
      await takeServiceWorker(page, { pops: [name, ...peers.map((pop) => pop.name)], regions: [] });
      pages.set(name, page);
    }
    // A PoP that has been there for a while knows its regions, as the simulated one does.
    for (let probe = 0; probe < PROBE_PERIODS; probe++) await world.cron();
    const times: number[] = [];
    let near: string | undefined;
    for (const [period, reads] of inBatches(trace, scenario).entries()) {
      if (period > 0) await world.cron();
      const startMs = performance.now();
      for (const [i, read] of reads.entries()) {
        await untilMs(startMs + (i / reads.length) * 1_000 * scenario.periodSeconds);
        const pop = trace.pop[read]!;
        if (pop !== near) await world.client.near((near = pop));
        const object = trace.object[read]!;
        times.push(await timedRead(pages.get(pop)!, trace.keys[object]!, trace.bytes[object]!));
      }
    }
    const outcome = outcomeOf(times);
    progress(`${system.name}: mean ${outcome.meanMs.toFixed(0)}, p99 ${outcome.p99Ms.toFixed(0)} ms`);
    return outcome;
  } finally {
    for (const context of contexts) await context.close();
    await world.stop();
  }
}

/** The simulator's system as variables of the real PoPs. The last system is what PoPs do without any of them. */
function popVariables({ name, policy, read, joint }: SystemSpec): Record<string, string> {
  if (name === DEFAULTS) return {};
  const variables = {
    POLICY: policy === "backend" ? "off" : policy,
    DELTA: read.delta,
    FUNCTIONAL: read.cachedChunks === "functional",
    ...(joint ? {} : { PEERS: "[]" }),
  };
  return Object.fromEntries(Object.entries(variables).map(([variable, value]) => [variable, String(value)]));
}

async function putObjects(world: LocalWorld, trace: Trace): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "agarose-policies-"));
  try {
    const files: string[] = [];
    for (const [i, key] of trace.keys.entries()) {
      const file = join(folder, key.slice("objects/".length));
      await writeFile(file, randomBytes(trace.bytes[i]!));
      files.push(file);
    }
    await world.agarose("put", ...files, "--prefix", "objects/");
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function timedRead(page: Page, key: string, bytes: number): Promise<number> {
  const answer = await page.evaluate(async (path) => {
    const start = performance.now();
    const response = await fetch(path, { cache: "no-store" });
    const body = await response.arrayBuffer();
    const ms = performance.now() - start;
    const { status, ok } = response;
    return { ms, byteLength: body.byteLength, status, text: ok ? "" : new TextDecoder().decode(body) };
  }, `/ec/${key}`);
  if (answer.byteLength === bytes) return answer.ms;
  throw new Error(`${key}: status ${answer.status}, ${answer.byteLength} of ${bytes} bytes ${answer.text}`);
}

function outcomeOf(times: readonly number[]): Outcome {
  const sorted = times.toSorted((a, b) => a - b);
  return {
    meanMs: times.reduce((sum, ms) => sum + ms, 0) / times.length,
    p99Ms: sorted[Math.floor(0.99 * (sorted.length - 1))]!,
  };
}

function describe(
  scenario: Scenario,
  trace: Trace,
  rows: readonly { system: SystemSpec; real: Outcome; predicted: readonly Outcome[] }[],
  browser: string,
): string {
  const change = (value: number, base: number): string =>
    `${value < base ? "-" : "+"}${Math.abs(100 * (value / base - 1)).toFixed(0)}%`;
  const baseline = rows.find(({ system }) => system.name === BASELINE) ?? rows[0]!;
  return [
    `Scenario \`${scenario.name}\`: ${trace.object.length} reads of ${trace.keys.length} objects at ${scenario.pops.length} PoPs, in periods of ${scenario.periodSeconds} s with ` +
      `${Math.round(scenario.periodSeconds * scenario.requests.perSecond * scenario.pops.length)} reads. *Real* is the service worker in Chromium, PoPs in workerd and ` +
      "buckets behind emulated links, one world per system, all at the same time; regions have been probed for " +
      `${PROBE_PERIODS} periods, and cold caches count. *Simulated* is the same trace through ` +
      `\`agarose simulate\`'s model, ${scenario.runs} times: the median, and for the 99th percentile the range too. Changes are against *${baseline.system.name}*. ` +
      `*${DEFAULTS}* is what PoPs do without settings.`,
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
      rows.map(({ system, real, predicted }) => {
        const meanMs = summarize(predicted.map((run) => run.meanMs)).median;
        const p99s = predicted.map((run) => run.p99Ms);
        const p99Ms = summarize(p99s).median;
        return [
          system.name,
          real.meanMs.toFixed(0),
          meanMs.toFixed(0),
          (real.meanMs / meanMs).toFixed(2),
          change(real.meanMs, baseline.real.meanMs),
          real.p99Ms.toFixed(0),
          p99Ms.toFixed(0),
          `${Math.min(...p99s).toFixed(0)} to ${Math.max(...p99s).toFixed(0)}`,
          (real.p99Ms / p99Ms).toFixed(2),
          change(real.p99Ms, baseline.real.p99Ms),
        ];
      }),
    ),
    describeMachine(browser),
  ].join("\n\n");
}
