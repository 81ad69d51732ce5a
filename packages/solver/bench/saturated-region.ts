/**
 * A region near saturation: how readers at one PoP share requests among regions (Sprout, section IV-A). Prints the
 * table of docs/internals/policies-measured.md.
 *
 *   node packages/solver/bench/saturated-region.ts    # some ten seconds
 *
 * Each region is a queue that serves so many chunks side by side, first come, first served. A read starts k + 1
 * requests, takes the first k and cancels the rest: what waits leaves the queue, what is served continues. A request is
 * never repeated, and nothing is cached. The PoP measures latencies once a period, as deployed PoPs do.
 */

import { seededRandom } from "../src/random.ts";
import { EventQueue } from "./event-queue.ts";

const K = 9;
const DELTA = 1;
const READS_PER_SECOND = 20;
const SECONDS = 1_200;
const PERIOD_MS = 60_000;
/** Reads of the first periods learn the latencies. */
const MEASURED_FROM_MS = 5 * PERIOD_MS;
const SERVICE_MS = 50;
/** Lognormal: service times vary by half. */
const SIGMA = 0.5;
/** Milliseconds to a region and back, two of twelve chunks in each. */
const DISTANCE_MS = [20, 40, 80, 120, 160, 200];
/** Sigma of the lognormal noise of distances. */
const NOISE = 0.3;
const LIMITED = 0;
const UNLIMITED = 1_000;
/** Readers take sources for equally good that differ by less (`core`'s read plan). */
const JITTER = 0.05;
const SEEDS = [1, 2, 3];

/** What readers and PoPs estimate of a region, and the weight of its next sample (`core`'s `observeLatency`). */
interface Estimate {
  readonly meanMs: number;
  readonly sdMs: number;
}
const GAIN = 0.2;

type Rule = "nearest" | "draws" | "little";
const RULES: readonly { readonly rule: Rule; readonly name: string }[] = [
  { rule: "nearest", name: "nearest, by last period's means" },
  { rule: "draws", name: "a draw from each measured distribution" },
  { rule: "little", name: "Little's law on requests in flight" },
];

interface Request {
  readonly read: Read;
  readonly region: number;
  readonly startMs: number;
  isServed: boolean;
}

interface Read {
  readonly startMs: number;
  arrived: number;
}

interface Region {
  readonly places: number;
  busy: number;
  readonly waiting: Request[];
  estimate: Estimate;
  samples: number[];
  /** Requests of this PoP under way, and a mean of those that ended a second. */
  inFlight: number;
  perMs: number;
  lastEndMs: number;
}

process.stdout.write("| load of the region | choice of sources | mean ms | p99 ms | its requests |\n");
process.stdout.write("| --- | --- | --- | --- | --- |\n");
// Two chunks of each read are there, if all readers ask for them.
const offered = (2 * READS_PER_SECOND * SERVICE_MS) / 1_000;
for (const load of [0.3, 0.8, 0.95, 1.1]) {
  for (const { rule, name } of RULES) {
    const rows = SEEDS.map((seed) => simulate(rule, offered / load, seed));
    const mean = (of: (row: Row) => number): number => rows.reduce((sum, row) => sum + of(row), 0) / rows.length;
    const cells = [mean((r) => r.meanMs).toFixed(0), mean((r) => r.p99Ms).toFixed(0)];
    const share = `${(100 * mean((r) => r.share)).toFixed(1)}%`;
    process.stdout.write(`| ${(100 * load).toFixed(0)}% | ${[name, ...cells, share].join(" | ")} |\n`);
  }
}

interface Row {
  readonly meanMs: number;
  readonly p99Ms: number;
  /** Share of all requests that went to the limited region. */
  readonly share: number;
}

/** @param places chunks that the limited region serves side by side; a fraction makes each of them slower. */
function simulate(rule: Rule, places: number, seed: number): Row {
  const random = seededRandom(seed);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
  // Whole places, each slowed so that their sum serves what `places` would.
  const whole = Math.max(1, Math.round(places));
  const slowdown = whole / places;
  const events = new EventQueue();
  const regions = DISTANCE_MS.map((ms, r): Region => ({
    places: r === LIMITED ? whole : UNLIMITED,
    busy: 0,
    waiting: [],
    estimate: { meanMs: ms + SERVICE_MS, sdMs: SERVICE_MS * SIGMA },
    samples: [],
    inFlight: 0,
    perMs: 0,
    lastEndMs: 0,
  }));
  const taken: number[] = [];
  let requests = 0;
  let limited = 0;

  const scoreOf = (region: Region, nowMs: number): number => {
    const { meanMs, sdMs } = region.estimate;
    if (rule === "draws") return Math.max(0, meanMs + sdMs * normal());
    const jitter = 1 + JITTER * random.next();
    if (rule === "nearest" || region.perMs === 0) return meanMs * jitter;
    // Without an end for long, the rate is lower than it was.
    const perMs = Math.min(region.perMs, 1 / Math.max(1e-3, (nowMs - region.lastEndMs) / 10));
    return Math.max(DISTANCE_MS[regions.indexOf(region)]! + SERVICE_MS, (region.inFlight + 1) / perMs) * jitter;
  };
  const serve = (region: Region, request: Request, nowMs: number): void => {
    request.isServed = true;
    region.busy++;
    const slow = request.region === LIMITED ? slowdown : 1;
    const serviceMs = SERVICE_MS * slow * Math.exp(SIGMA * normal() - SIGMA ** 2 / 2);
    events.at(nowMs + serviceMs, () => leave(region, request, nowMs + serviceMs));
  };
  const leave = (region: Region, request: Request, nowMs: number): void => {
    region.busy--;
    const next = region.waiting.shift();
    if (next) serve(region, next, nowMs);
    const atMs = nowMs + DISTANCE_MS[request.region]! * Math.exp(NOISE * normal() - NOISE ** 2 / 2);
    events.at(atMs, () => arrive(region, request, atMs));
  };
  const arrive = (region: Region, request: Request, nowMs: number): void => {
    ended(region, nowMs);
    const { read } = request;
    if (++read.arrived > K) return;
    region.samples.push(nowMs - request.startMs);
    if (read.arrived < K) return;
    if (read.startMs >= MEASURED_FROM_MS) taken.push(nowMs - read.startMs);
    for (const other of regions) {
      const i = other.waiting.findIndex((waiting) => waiting.read === read);
      if (i >= 0) {
        other.waiting.splice(i, 1);
        other.inFlight--;
      }
    }
  };
  const ended = (region: Region, nowMs: number): void => {
    region.inFlight--;
    const gapMs = Math.max(1e-3, nowMs - region.lastEndMs);
    const weight = 1 - Math.exp(-gapMs / 1_000);
    region.perMs += weight * (1 / gapMs - region.perMs);
    region.lastEndMs = nowMs;
  };
  const start = (nowMs: number): void => {
    const read: Read = { startMs: nowMs, arrived: 0 };
    const chunks = Array.from({ length: 12 }, (_, chunk) => chunk % DISTANCE_MS.length);
    const scores = regions.map((region) => scoreOf(region, nowMs));
    for (const r of chunks.toSorted((a, b) => scores[a]! - scores[b]!).slice(0, K + DELTA)) {
      const region = regions[r]!;
      const request: Request = { read, region: r, startMs: nowMs, isServed: false };
      region.inFlight++;
      if (read.startMs >= MEASURED_FROM_MS) {
        requests++;
        if (r === LIMITED) limited++;
      }
      if (region.busy < region.places) serve(region, request, nowMs);
      else region.waiting.push(request);
    }
    const nextMs = nowMs - (Math.log(1 - random.next()) * 1_000) / READS_PER_SECOND;
    if (nextMs < SECONDS * 1_000) events.at(nextMs, () => start(nextMs));
  };
  const period = (nowMs: number): void => {
    for (const region of regions) {
      const sorted = region.samples.toSorted((a, b) => a - b);
      for (const q of sorted.length > 3 ? [0.25, 0.5, 0.75] : []) {
        region.estimate = observe(region.estimate, sorted[Math.floor(q * (sorted.length - 1))]!);
      }
      // A region that no reader asks is probed: what it takes with its present queue.
      if (sorted.length === 0) {
        const waitMs = (region.waiting.length * SERVICE_MS) / region.places;
        const ms = DISTANCE_MS[regions.indexOf(region)]! + SERVICE_MS + waitMs;
        for (let probe = 0; probe < 3; probe++) region.estimate = observe(region.estimate, ms);
      }
      region.samples = [];
    }
    if (nowMs < SECONDS * 1_000) events.at(nowMs + PERIOD_MS, () => period(nowMs + PERIOD_MS));
  };

  events.at(0, () => start(0));
  events.at(PERIOD_MS, () => period(PERIOD_MS));
  events.run();
  const sorted = taken.toSorted((a, b) => a - b);
  return {
    meanMs: sorted.reduce((sum, ms) => sum + ms, 0) / sorted.length,
    p99Ms: sorted[Math.floor(0.99 * sorted.length)]!,
    share: limited / requests,
  };
}

function observe({ meanMs, sdMs }: Estimate, ms: number): Estimate {
  const error = ms - meanMs;
  const variance = (1 - GAIN) * (sdMs ** 2 + GAIN * error ** 2);
  return { meanMs: meanMs + GAIN * error, sdMs: Math.sqrt(variance) };
}
