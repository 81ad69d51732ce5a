/** One system's world: where the chunks are, how far away, how large, and what a read with given caches takes. */
import { SolverError } from "../errors.ts";
import { busyChargeMs, memoizedLateBinding } from "../options/late-binding.ts";
import type { LatencyLaw } from "../options/latency.ts";
import { firstFunctional } from "../planner/cache-options.ts";
import type { Random } from "../random.ts";
import { Candidates } from "./candidates.ts";
import { Conditions } from "./scenario/conditions.ts";
import { Noise, type NoiseSample } from "./noise.ts";
import { bitCount, nthSmallest } from "./numbers.ts";
import { groupObjects, nominalBytes, objectBytes, type Group } from "./scenario/catalogue.ts";
import type { ClientSpec, CodeShape, PopSpec, Scenario, SystemSpec } from "./scenario/scenario.ts";

/** The outcome of a read. The next read reuses the same object. */
export interface ReadOutcome {
  /** Duration in milliseconds; NaN when fewer than k chunks were available. */
  ms: number;
  /** Chunks requested from the own cache, peers and regions together. */
  requests: number;
  fromOwn: number;
  fromPeers: number;
  /** Whether the reader had to decode, because it used other chunks than data chunks. */
  isDecoded: boolean;
}

/** Reads over which the extra load of regions is smoothed. */
const WINDOW_READS = 500;
/** Overload is capped: beyond it the formula has no steady state. */
const BUSY_MAX = 0.95;
/** Noise samples over which expected latencies are averaged. */
const SAMPLES = 48;
const SAMPLE_SEED = 0x5eed;
/** Stored and functional chunks of an object: they are the bits of a number. */
const CHUNKS_MAX = 30;
/** A reader uses a plan for this long. */
const PLAN_SECONDS = 60;

/** The regions, PoPs, objects and readers of one system in one run. */
export class SimulatedWorld {
  readonly code: CodeShape;
  readonly chunks: number;
  readonly objects: number;
  readonly pops: readonly PopSpec[];
  readonly capacity: Float64Array;
  /** Weight of one chunk of each object in the unit of the capacity. */
  readonly chunkWeight: Float64Array;
  /** Bytes of one chunk of each object. */
  readonly chunkBytes: Float64Array;
  readonly groupOf: Int32Array;
  readonly conditions: Conditions;
  /** Whether caches may keep rows of the code that no region has. */
  readonly functional: boolean;
  readonly joint: boolean;
  /** Share of the time that a region is busy with reads that ask for k chunks. */
  readonly utilization: number;
  readonly outcome: ReadOutcome = { ms: 0, requests: 0, fromOwn: 0, fromPeers: 0, isDecoded: false };
  /** Requests beyond k that a read may make: it makes those that are worth what they cost where regions are busy. */
  readonly delta: number;
  /** Whether caches keep the data chunk that a read recovered, instead of the parity chunk it was recovered from. */
  readonly recovered: boolean;
  /** False for copies of whole objects, which need no decoding. */
  readonly #isCoded: boolean;
  /** Milliseconds that a read takes longer which has to decode. */
  readonly decodeMs: number;
  readonly #client: ClientSpec;
  /** Per object and PoP: when a reader there last received its plan. */
  readonly #plannedSeconds: Float64Array;
  #seconds = 0;
  readonly #groups: readonly Group[];
  readonly #regionMs: Float64Array[];
  readonly #noise: Noise;
  readonly #samples: NoiseSample[];
  readonly #load: RegionLoad;
  readonly #candidates: Candidates;
  readonly #chunkFactor: Noise["chunkFactor"];
  /** The delay of other reads by the requests beyond k of the last read, in milliseconds. */
  #chargeMs = 0;
  readonly #bindLate = memoizedLateBinding();
  /** Chunks to keep, by PoP, group and d, under the present conditions. */
  readonly #chosen = new Map<number, number>();
  readonly #arrival: Float64Array;
  readonly #sorted: Float64Array;

  constructor(scenario: Scenario, system: SystemSpec, placement: Random) {
    const { regions, pops } = scenario;
    this.code = system.replicas ? { k: 1, m: system.replicas - 1 } : scenario.code;
    this.chunks = this.code.k + this.code.m;
    this.objects = scenario.objects.count;
    this.pops = pops;
    this.functional = system.read.cachedChunks === "functional" && !system.replicas;
    if (this.functional && this.chunks + this.code.k > CHUNKS_MAX) {
      throw new SolverError(
        "SCENARIO_INVALID",
        `code ${this.code.k}+${this.code.m} with as many functional chunks as data chunks has more than ${CHUNKS_MAX}`,
        { code: this.code },
      );
    }
    this.joint = system.joint;
    this.delta = system.replicas ? 0 : system.read.delta;
    this.recovered = system.read.cachedChunks === "recovered" && !system.replicas;
    this.#isCoded = !system.replicas;
    this.decodeMs = system.read.decodeMs;
    this.#client = scenario.client;
    this.#plannedSeconds = new Float64Array(this.objects * pops.length).fill(-Infinity);
    this.conditions = new Conditions(scenario.events, regions);
    this.#noise = new Noise(scenario.noise, this.chunks, regions.length, pops.length);
    this.#chunkFactor = this.#noise.chunkFactor;
    this.#samples = this.#noise.samples(SAMPLES, SAMPLE_SEED);
    this.utilization = scenario.load.utilization;
    this.#load = new RegionLoad(this.utilization, regions.length, this.code.k);
    this.#regionMs = pops.map((pop) => Float64Array.from(regions, (region) => pop.regionLatencyMs[region]!));
    const bytes = objectBytes(scenario, placement.fork(1));
    const chunkBytes = bytes.map((size) => Math.ceil(size / this.code.k));
    this.chunkBytes = chunkBytes;
    const isUniform = typeof scenario.objects.bytes === "number";
    this.chunkWeight = isUniform ? new Float64Array(this.objects).fill(1) : chunkBytes;
    this.capacity = Float64Array.from(pops, (pop) => {
      const capacityBytes =
        pop.capacityBytes ?? pop.capacityChunks! * Math.ceil(nominalBytes(scenario) / scenario.code.k);
      return isUniform ? Math.floor(capacityBytes / chunkBytes[0]!) : capacityBytes;
    });
    const placed = placement.fork(2);
    const { groups, groupOf } = groupObjects(scenario, this.chunks, !this.#isCoded, chunkBytes, placed);
    this.#groups = groups;
    this.groupOf = groupOf;
    this.#candidates = new Candidates({
      k: this.code.k,
      chunks: this.chunks,
      groups,
      conditions: this.conditions,
      regionMs: this.#regionMs,
      peerMs: pops.map((pop) => Float64Array.from(pops, (peer) => pop.peerLatencyMs[peer.name] ?? Infinity)),
      joint: this.joint,
      dataOnly: system.read.dataChunksOnly && !system.replicas,
    });
    this.#arrival = new Float64Array(this.#candidates.estimate.length);
    this.#sorted = new Float64Array(this.#candidates.estimate.length);
  }

  /** Moves to a moment; returns whether latencies or availability changed. */
  advance(seconds: number): boolean {
    this.#seconds = seconds;
    const changed = this.conditions.advance(seconds);
    if (changed) {
      this.#candidates.forget();
      this.#chosen.clear();
    }
    return changed;
  }

  get groupCount(): number {
    return this.#groups.length;
  }

  /** Reads one object of a group. `held` has the cached chunks of each PoP as a bit mask, functional ones last. */
  read(pop: number, group: number, held: ArrayLike<number>, noise: NoiseSample, isCharged: boolean): ReadOutcome {
    const { outcome, code } = this;
    const arrival = this.#arrival;
    const sorted = this.#sorted;
    const { estimate } = this.#candidates;
    const own = Math.min(bitCount(held[pop]!), code.k);
    const found = this.#candidates.list(pop, group, held);
    const extra = this.#extra(pop, group, own, found);
    const wanted = own >= code.k ? 0 : Math.min(found, code.k - own + extra);
    outcome.requests = own + wanted;
    outcome.fromOwn = own;
    outcome.fromPeers = 0;
    if (own + wanted < code.k) {
      outcome.ms = NaN;
      return outcome;
    }
    const ownMs = this.pops[pop]!.cacheLatencyMs * noise.own;
    const ownTransferMs = this.#groups[group]!.cacheTransferMs[pop]!;
    for (let s = 0; s < wanted; s++) arrival[s] = this.#arrivalOf(s, group, noise, isCharged, own + s >= code.k);
    if (isCharged) this.#load.endRead();
    const kth = (asked: number): number => {
      for (let s = 0; s < asked; s++) sorted[s] = arrival[s]!;
      // One response carries them one after another.
      for (let s = 0; s < own; s++) sorted[asked + s] = ownMs + (s + 1) * ownTransferMs;
      const ms = nthSmallest(sorted, own + asked, code.k);
      return Math.max(ms, this.#lineEndMs(pop, group));
    };
    let asked = wanted;
    let ms = kth(asked);
    if (this.#client.hedge && own < code.k) {
      let lateMs = estimate[code.k - own - 1]! * this.#noise.lateFactor;
      while (lateMs < ms && asked < found) {
        arrival[asked] = lateMs + this.#arrivalOf(asked, group, noise, isCharged, true);
        lateMs += estimate[asked]! * this.#noise.lateFactor;
        ms = kth(++asked);
      }
    }
    outcome.requests = own + asked;
    outcome.isDecoded = this.#needsDecoding(held[pop]!, asked, ms);
    outcome.ms = this.#client.overheadMs + (outcome.isDecoded ? ms + this.decodeMs : ms);
    return outcome;
  }

  /** When the reader's line has carried the k chunks that `#sorted` begins with, each since its first byte. */
  #lineEndMs(pop: number, group: number): number {
    const { lineMs, transferMs } = this.#groups[group]!;
    let ms = 0;
    if (lineMs === 0) return ms;
    for (let s = 0; s < this.code.k; s++) ms = Math.max(ms, this.#sorted[s]! - transferMs[pop]!) + lineMs;
    return ms;
  }

  /** How many requests beyond k are worth what they cost other reads. */
  #extra(pop: number, group: number, own: number, found: number): number {
    const { k } = this.code;
    this.#chargeMs = 0;
    if (this.delta === 0 || this.utilization === 0 || own >= k || found <= k - own) return this.delta;
    const { estimate, source } = this.#candidates;
    const neededMs = this.#candidates.msOf(pop, group, k - 1);
    const { mean, deviation } = this.#chunkFactor;
    const cached = Array.from({ length: own }, () => ({ meanMs: this.pops[pop]!.cacheLatencyMs * mean }));
    const remote = Array.from({ length: Math.min(found, k - own + this.delta) }, (_, s) => {
      const meanMs = estimate[s]! * mean;
      const charge = source[s]! < 0 || estimate[s]! > neededMs ? 0 : busyChargeMs(meanMs, k, this.utilization);
      return { meanMs, sdMs: estimate[s]! * deviation, extraMs: charge };
    });
    const { extra } = this.#bindLate([...cached, ...remote], k);
    for (const { extraMs: charge } of remote.slice(k - own, k - own + extra)) this.#chargeMs += charge;
    return extra;
  }

  /** When candidate s arrives if it is requested at the start. */
  #arrivalOf(s: number, group: number, noise: NoiseSample, isCharged: boolean, isExtra: boolean): number {
    const from = this.#candidates.source[s]!;
    if (from < 0) {
      this.outcome.fromPeers++;
      return this.#candidates.estimate[s]! * noise.peer[-1 - from]!;
    }
    const r = this.#groups[group]!.region[from]!;
    const factor = isCharged ? this.#load.factor(r) : 1;
    if (isCharged && isExtra) this.#load.countExtra(r);
    return this.#candidates.estimate[s]! * noise.chunk[from]! * noise.region[r]! * factor;
  }

  /** Whether one of the chunks that arrived by `ms` is not a data chunk. */
  #needsDecoding(held: number, wanted: number, ms: number): boolean {
    if (!this.#isCoded) return false;
    if (held >> this.code.k !== 0) return true;
    for (let s = 0; s < wanted; s++) {
      const chunk = this.#candidates.chunk[s]!;
      if ((chunk < 0 || chunk >= this.code.k) && this.#arrival[s]! <= ms) return true;
    }
    return false;
  }

  /** Reads an object with the noise of this read, and charges its extra requests to the regions that serve them. */
  readActual(pop: number, object: number, held: ArrayLike<number>, seed: number): ReadOutcome {
    const noise = this.#noise.sampleFor(seed);
    const outcome = this.read(pop, this.groupOf[object]!, held, noise, this.delta > 0);
    if (this.#client.plans === "asked") outcome.ms += this.#planMs(pop, object, noise);
    return outcome;
  }

  #planMs(pop: number, object: number, noise: NoiseSample): number {
    const at = object * this.pops.length + pop;
    const plannedSeconds = this.#plannedSeconds[at]!;
    if (this.#seconds - plannedSeconds < PLAN_SECONDS) return 0;
    this.#plannedSeconds[at] = this.#seconds;
    const manifestMs = plannedSeconds === -Infinity ? Math.min(...this.#regionMs[pop]!) : 0;
    return this.pops[pop]!.cacheLatencyMs * noise.own + manifestMs;
  }

  /** Expected duration of a read, and what it costs other reads; Infinity when it cannot be completed. */
  expectedMs(pop: number, group: number, held: ArrayLike<number>): number {
    let sum = 0;
    for (const noise of this.#samples) sum += this.read(pop, group, held, noise, false).ms + this.#chargeMs;
    return Number.isNaN(sum) ? Infinity : sum / this.#samples.length;
  }

  /**
   * Chooses the d chunks of a group's object that a PoP keeps, given the chunks of its peers: the d most distant of the
   * k chunks that a read would use, or as many rows of the code if they are not slower. With `recovered`, data
   * chunks that the read does not use replace parity (Liu et al., section V-B: the recovered data chunk is
   * cached instead).
   */
  chooseChunks(pop: number, group: number, d: number, held: ArrayLike<number>): number {
    if (!this.functional) return this.#chooseCopies(pop, group, d, held);
    // A whole object is kept as data.
    if (d >= this.code.k) return (1 << this.code.k) - 1;
    const name = (pop * this.groupCount + group) * this.code.k + d;
    let chosen = this.#chosen.get(name);
    if (chosen === undefined) {
      const msOf = (kept: number): number =>
        this.expectedMs(
          pop,
          group,
          Int32Array.from(this.pops, (_, q) => (q === pop ? kept : 0)),
        );
      const rows = this.rows(0, d);
      const copies = this.#chooseCopies(pop, group, d, new Int32Array(this.pops.length));
      chosen = bitCount(copies) === d && msOf(copies) < msOf(rows) ? copies : rows;
      this.#chosen.set(name, chosen);
    }
    return chosen;
  }

  /** The functional chunks from number `from` on, as a bit mask. */
  rows(from: number, count: number): number {
    return ((1 << count) - 1) << (this.chunks + from);
  }

  #chooseCopies(pop: number, group: number, d: number, held: ArrayLike<number>): number {
    const without = Array.from(held);
    without[pop] = 0;
    const found = Math.min(this.#candidates.list(pop, group, without), this.code.k);
    let mask = 0;
    for (let s = Math.max(0, found - d); s < found; s++) mask |= 1 << this.#candidates.chunk[s]!;
    return this.recovered ? this.#recover(mask, group, found) : mask;
  }

  /**
   * Replaces the parity chunks in the mask by data chunks outside the `found` candidates, first those of regions that
   * are down.
   */
  #recover(mask: number, group: number, found: number): number {
    const { k } = this.code;
    let used = 0;
    for (let s = 0; s < found; s++) used |= 1 << this.#candidates.chunk[s]!;
    const { region } = this.#groups[group]!;
    const unused = Array.from({ length: k }, (_, c) => c).filter((c) => !(used & (1 << c)));
    const missing = unused.toSorted((a, b) => this.conditions.down[region[b]!]! - this.conditions.down[region[a]!]!);
    let kept = mask & ((1 << k) - 1);
    for (let parity = bitCount(mask >> k); parity > 0; parity--) kept |= 1 << missing.shift()!;
    return kept;
  }

  /** Latency of one chunk from each region under the present conditions, without its transfer. */
  regionLatencies(pop: number): LatencyLaw[] {
    const { mean, deviation } = this.#noise.chunkFactor;
    return Array.from(this.#regionMs[pop]!, (ms, r) => {
      const now = ms * this.conditions.factor[r]!;
      return { meanMs: now * mean, sdMs: now * deviation };
    });
  }

  /** Latency of one chunk from a peer's cache, without its transfer; its mean is Infinity without a connection. */
  peerLatency(pop: number, peer: number): Required<LatencyLaw> {
    const { mean, deviation } = this.#noise.chunkFactor;
    const ms = this.pops[pop]!.peerLatencyMs[this.pops[peer]!.name] ?? Infinity;
    return { meanMs: ms * mean, sdMs: ms * deviation };
  }

  /** Region of every stored chunk of a group's objects, by chunk index. */
  placementOf(group: number): Int32Array {
    return this.#groups[group]!.region;
  }

  /** Region of every chunk of a group's objects that is available now, nearest first. */
  regionsOf(pop: number, group: number): number[] {
    return Array.from(this.#candidates.orderOf(pop, group), (chunk) => this.#groups[group]!.region[chunk]!);
  }

  /** Indices of the chunks in a bit mask, as deployed PoPs name them: rows of different PoPs have different ones. */
  indicesOf(pop: number, held: number): number[] {
    const beyond = firstFunctional(this.code, pop) - this.chunks;
    const bits = Array.from({ length: CHUNKS_MAX }, (_, bit) => bit).filter((bit) => held & (1 << bit));
    return bits.map((bit) => (bit < this.chunks ? bit : bit + beyond));
  }

  /** The bit mask of these chunks of a PoP. */
  maskOf(pop: number, indices: readonly number[]): number {
    const beyond = firstFunctional(this.code, pop) - this.chunks;
    return indices.reduce((mask, chunk) => mask | (1 << (chunk < this.chunks ? chunk : chunk - beyond)), 0);
  }
}

/**
 * The recent extra load of every region. Late binding asks for more chunks than it needs, which costs the regions that
 * serve them. In a region that is busy for a share u of the time, x times the load makes requests slower by
 * (1 - u) / (1 - u x), as in a queue. The scenario's latencies already contain the load without extra requests.
 */
class RegionLoad {
  readonly #utilization: number;
  readonly #usual: number;
  /** Recent extra requests per read, by region. */
  readonly #extra: Float64Array;
  readonly #counted: Float64Array;

  constructor(utilization: number, regions: number, k: number) {
    this.#utilization = utilization;
    this.#usual = k / regions;
    this.#extra = new Float64Array(regions);
    this.#counted = new Float64Array(regions);
  }

  countExtra(region: number): void {
    this.#counted[region]! += 1;
  }

  endRead(): void {
    for (let r = 0; r < this.#extra.length; r++) {
      this.#extra[r]! += (this.#counted[r]! - this.#extra[r]!) / WINDOW_READS;
      this.#counted[r] = 0;
    }
  }

  /** Factor by which extra requests lengthen a region's latency, at least 1. */
  factor(region: number): number {
    const busy = Math.min(BUSY_MAX, this.#utilization * (1 + this.#extra[region]! / this.#usual));
    return (1 - this.#utilization) / (1 - busy);
  }
}
