/**
 * The simulator: plays one sequence of requests against every system of a scenario, and reports what the readers saw.
 * Equal scenarios give equal results. All systems get the same requests, placements and noise.
 */
import { C2pDecider, EVENT_SETTINGS } from "./deciders/c2p.ts";
import { Caches } from "./cache-state.ts";
import { PeriodicDecider, SeparateDecider, type Decider } from "./deciders/decider.ts";
import { TurnDecider } from "./deciders/turn-decider.ts";
import { ReadLog, type ReadStatistics } from "./statistics.ts";
import type { Scenario, SystemSpec } from "./scenario/scenario.ts";
import { GeneratedWorkload, TraceWorkload, type Workload } from "./workload.ts";
import { SimulatedWorld } from "./world.ts";
import { seededRandom, type Random } from "../random.ts";
import type { Trace } from "../traces/trace.ts";

/**
 * The result of one system at one PoP, or at all PoPs together, over all runs. Times are in milliseconds, ratios from 0
 * to 1.
 */
export interface SimulationRow extends ReadStatistics {
  /** Name of the policy or system. */
  readonly name: string;
  /** Name of the PoP, or "all". */
  readonly pop: string;
  /** Values written into the cache, per run. */
  readonly writes: number;
  /** Mean duration of one call of the policy (on each request and at the end of each period); 0 without a clock. */
  readonly solveMs: number;
  /** Messages sent to other PoPs, per run; only where PoPs exchange cache events. */
  readonly messages?: number;
  /** How many objects the cache keeps with 0, 1, .. k chunks at the end of the last run. */
  readonly objectsByChunks: readonly number[];
  /** Percent by which reads take longer than under the clairvoyant policy; only when the scenario lists it. */
  readonly lossPercent?: number;
}

/** Arguments of the caller besides the scenario. */
export interface SimulationOptions {
  /** A clock in milliseconds for `solveMs`. */
  readonly now?: () => number;
  /**
   * Replays this log instead of drawing requests; the scenario's objects, popularity and requests then have no effect.
   */
  readonly trace?: Trace;
  /**
   * Receives the fraction of all requests played, over all systems and runs: first 0, then rising, last 1. It is called
   * at least a hundred times a run, or once a request in shorter runs. Systems differ in speed, so a linear estimate of
   * the time left is rough.
   */
  readonly onProgress?: (done: number) => void;
}

/**
 * Runs every system of the scenario. Returns one row per system and PoP, and one per system for all PoPs together.
 * Throws SCENARIO_INVALID for an unknown policy or setting.
 */
export function simulate(given: Scenario, options: SimulationOptions = {}): SimulationRow[] {
  const { trace } = options;
  const scenario = trace ? { ...given, objects: { count: trace.keys.length, bytes: trace.bytes } } : given;
  const rows: SimulationRow[] = [];
  const parts = scenario.systems.length * scenario.runs;
  for (const [s, system] of scenario.systems.entries()) {
    const total: Total = {
      logs: scenario.pops.map(() => new ReadLog()),
      writes: scenario.pops.map(() => 0),
      messages: scenario.pops.map(() => 0),
      contents: [],
      decisions: 0,
      decisionMs: 0,
    };
    for (let run = 0; run < scenario.runs; run++) {
      const report = (done: number): void => options.onProgress?.((s * scenario.runs + run + done) / parts);
      runOnce(scenario, system, run, total, options, report);
    }
    if (trace) correctFor(trace, total.logs);
    rows.push(...rowsOf(system, total, scenario));
  }
  options.onProgress?.(1);
  return withLoss(rows, scenario);
}

/** The sums of all runs of one system. */
interface Total {
  readonly logs: ReadLog[];
  readonly writes: number[];
  readonly messages: number[];
  readonly contents: number[][];
  decisions: number;
  decisionMs: number;
}

/** Reads that a sample of a log has too few, or too many, are full hits of every PoP by its share of the reads. */
function correctFor({ report, share, object }: Trace, logs: readonly ReadLog[]): void {
  const missing = (report.reads * share) / object.length - 1;
  if (share < 1) for (const log of logs) log.correct(log.count * missing);
}

const PROGRESS_REQUESTS_MAX = 5000;

function runOnce(
  scenario: Scenario,
  system: SystemSpec,
  run: number,
  total: Total,
  { now, trace }: SimulationOptions,
  report: (done: number) => void,
): void {
  const random = seededRandom(scenario.seed).fork(run);
  const world = new SimulatedWorld(scenario, system, random.fork(1));
  const workload = trace ? new TraceWorkload(scenario, trace) : new GeneratedWorkload(scenario, random);
  const caches = new Caches(world, !decidesAtRequests(scenario, system));
  const decider = createDecider(caches, decidesAtRequests(scenario, system), system, random.fork(4));
  const controller = new Controller(scenario, decider, total, now);
  const noiseSeed = random.fork(3).integer(2 ** 31);
  const progressEvery = Math.max(1, Math.min(PROGRESS_REQUESTS_MAX, Math.floor(workload.total / 100)));
  for (let step = 0; workload.next(); step++) {
    const { seconds, pop, object } = workload;
    const hasChanged = world.advance(seconds);
    controller.advance(seconds, hasChanged, workload);
    total.logs[pop]!.add(world.readActual(pop, object, caches.heldOf(object), noiseSeed + step), world.code.k);
    controller.onRequest(pop, object, seconds);
    if (step % progressEvery === 0) report(step / workload.total);
  }
  total.contents.splice(0, Infinity, ...scenario.pops.map((_, pop) => contentsOf(caches, pop)));
  for (const [pop, writes] of caches.writes.entries()) total.writes[pop]! += writes;
  for (const [pop, messages] of controller.messages.entries()) total.messages[pop]! += messages;
}

/** PoPs that exchange cache events, as the settings of `c2p` say, decide at each of them. */
function decidesAtRequests({ decide }: Scenario, { policy, settings }: SystemSpec): boolean {
  return decide === "request" || (policy === "c2p" && EVENT_SETTINGS.some((name) => settings[name] !== undefined));
}

function createDecider(caches: Caches, atRequests: boolean, system: SystemSpec, random: Random): Decider {
  if (system.policy === "c2p" && atRequests) return new C2pDecider(caches, system.settings, random);
  if (system.joint) return new TurnDecider(caches, system, random);
  const decider = new SeparateDecider(caches, system);
  return atRequests ? decider : new PeriodicDecider(decider, caches, random);
}

function contentsOf(caches: Caches, pop: number): number[] {
  const counts = Array.from({ length: caches.world.code.k + 1 }, () => 0);
  for (let o = 0; o < caches.world.objects; o++) counts[caches.countOf(pop, o)]! += 1;
  return counts;
}

/** Calls the decider's hooks when they are due, and measures them. */
class Controller {
  readonly #decider: Decider;
  readonly #total: Total;
  readonly #now: (() => number) | undefined;
  readonly #scenario: Scenario;
  readonly #exchangeSeconds: number;
  #nextPeriod: number;
  #nextExchange: number;
  #nextProbe = Infinity;
  #truthVersion = -1;

  constructor(scenario: Scenario, decider: Decider, total: Total, now: (() => number) | undefined) {
    this.#decider = decider;
    this.#total = total;
    this.#now = now;
    this.#scenario = scenario;
    this.#exchangeSeconds = scenario.decide === "period" ? scenario.exchangeSeconds : Infinity;
    this.#nextPeriod = scenario.periodSeconds;
    this.#nextExchange = this.#exchangeSeconds;
  }

  get messages(): readonly number[] {
    return [...(this.#decider.messages ?? [])];
  }

  advance(seconds: number, hasChanged: boolean, workload: Workload): void {
    const decider = this.#decider;
    const { periodSeconds, probeSeconds } = this.#scenario;
    // PoPs probe latencies at fixed moments; only the oracle notices a change at once.
    if (hasChanged) {
      this.#nextProbe = decider.wantsTruth ? seconds : Math.ceil(seconds / probeSeconds) * probeSeconds;
    }
    if (seconds >= this.#nextProbe) {
      this.#nextProbe = Infinity;
      this.#measure(() => decider.onLatency?.(seconds));
    }
    if (decider.wantsTruth && workload.version !== this.#truthVersion) {
      this.#truthVersion = workload.version;
      const truth = workload.truth();
      this.#measure(() => decider.onTruth?.(truth, seconds));
    }
    for (;;) {
      const next = Math.min(this.#nextPeriod, this.#nextExchange);
      if (seconds < next) return;
      if (next === this.#nextPeriod) {
        this.#measure(() => decider.onPeriod(next));
        this.#nextPeriod += periodSeconds;
      } else this.#measure(() => decider.onExchange?.(next));
      this.#nextExchange = next + this.#exchangeSeconds;
    }
  }

  onRequest(pop: number, object: number, seconds: number): void {
    this.#measure(() => this.#decider.onRequest(pop, object, seconds));
  }

  #measure(decide: () => void): void {
    if (!this.#now) return decide();
    const begun = this.#now();
    decide();
    this.#total.decisionMs += this.#now() - begun;
    this.#total.decisions++;
  }
}

function rowsOf(system: SystemSpec, total: Total, { runs, pops }: Scenario): SimulationRow[] {
  const all = new ReadLog();
  for (const log of total.logs) all.addAll(log);
  const solveMs = total.decisions === 0 ? 0 : total.decisionMs / total.decisions;
  const row = (pop: string, log: ReadLog, writes: number, messages: number, contents: number[]): SimulationRow => ({
    name: system.name,
    pop,
    ...log.summarize(),
    writes: writes / runs,
    solveMs,
    ...(messages > 0 ? { messages: messages / runs } : {}),
    objectsByChunks: contents,
  });
  const contents = total.contents.reduce((so, counts) => so.map((count, d) => count + counts[d]!));
  const byPop = pops.map(({ name }, p) =>
    row(name, total.logs[p]!, total.writes[p]!, total.messages[p]!, total.contents[p]!),
  );
  return [...byPop, row("all", all, sum(total.writes), sum(total.messages), contents)];
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

function withLoss(rows: SimulationRow[], scenario: Scenario): SimulationRow[] {
  const oracle = scenario.systems.find((system) => system.policy === "clairvoyant")?.name;
  if (oracle === undefined) return rows;
  return rows.map((row) => {
    const best = rows.find((other) => other.name === oracle && other.pop === row.pop)!.meanMs;
    return { ...row, lossPercent: best > 0 ? (100 * (row.meanMs - best)) / best : 0 };
  });
}
