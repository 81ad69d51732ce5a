/** One system's world: where the chunks are, how far away, how large, and what a read with given caches takes. */

import type { LatencyEstimate } from "../latency.ts";
import type { Random } from "../random.ts";
import { Conditions } from "./conditions.ts";
import { Noise } from "./noise.ts";
import type { NoiseDraw } from "./noise.ts";
import { nominalBytes, objectBytes, placeChunks } from "./catalogue.ts";
import { RegionLoad } from "./region-load.ts";
import type { CodeShape, PopSpec, Scenario, SystemSpec } from "./scenario.ts";

/** How a read went; the same object is refilled by the next read. */
export interface ReadOutcome {
  /** NaN when fewer than k chunks could be had. */
  ms: number;
  /** Chunks asked for, of the own cache, of peers and of regions together. */
  requests: number;
  fromOwn: number;
  fromPeers: number;
}

/** Objects whose chunks are equally far and equally large behave alike and share all tables. */
interface Group {
  readonly region: Int32Array;
  readonly transferMs: Float64Array;
}

/** Draws by which expected latencies are averaged when there is noise. */
const SAMPLES = 48;
const SAMPLE_SEED = 0x5eed;

export class World {
  readonly code: CodeShape;
  readonly chunks: number;
  readonly objects: number;
  readonly pops: readonly PopSpec[];
  readonly capacity: Float64Array;
  /** Weight of one chunk of each object in the unit of the capacity. */
  readonly chunkWeight: Float64Array;
  readonly groupOf: Int32Array;
  readonly conditions: Conditions;
  readonly functional: boolean;
  readonly joint: boolean;
  /** Share of the time that a region is busy with reads that ask for k chunks. */
  readonly utilization: number;
  readonly outcome: ReadOutcome = { ms: 0, requests: 0, fromOwn: 0, fromPeers: 0 };
  private readonly delta: number;
  private readonly dataOnly: boolean;
  private readonly groups: Group[] = [];
  private readonly peerMs: Float64Array[];
  private readonly regionMs: Float64Array[];
  private readonly noise: Noise;
  private readonly samples: NoiseDraw[];
  private readonly load: RegionLoad;
  /** Per PoP and group: chunks that can be had from regions, nearest first, under the present conditions. */
  private order: (Int32Array | undefined)[][] = [];
  private readonly estimate: Float64Array;
  private readonly arrival: Float64Array;
  private readonly source: Int32Array;

  constructor(scenario: Scenario, system: SystemSpec, placement: Random) {
    const { regions, pops } = scenario;
    this.code = system.replicas ? { k: 1, m: system.replicas - 1 } : scenario.code;
    this.chunks = this.code.k + this.code.m;
    this.objects = scenario.objects.count;
    this.pops = pops;
    this.functional = system.read.cachedChunks === "functional" && !system.replicas;
    this.joint = system.joint;
    this.delta = system.replicas ? 0 : system.read.delta;
    this.dataOnly = system.read.dataChunksOnly && !system.replicas;
    this.conditions = new Conditions(scenario.events, regions);
    this.noise = new Noise(scenario.noise, this.chunks, regions.length, pops.length);
    this.samples = this.noise.samples(SAMPLES, SAMPLE_SEED);
    this.utilization = scenario.load.utilization;
    this.load = new RegionLoad(this.utilization, regions.length, this.code.k);
    this.regionMs = pops.map((pop) => Float64Array.from(regions, (region) => pop.regionLatencyMs[region]!));
    this.peerMs = pops.map((pop) => Float64Array.from(pops, (peer) => pop.peerLatencyMs[peer.name] ?? Infinity));
    const bytes = objectBytes(scenario, placement.fork(1));
    const chunkBytes = bytes.map((size) => Math.ceil(size / this.code.k));
    const isUniform = typeof scenario.objects.bytes === "number";
    this.chunkWeight = isUniform ? new Float64Array(this.objects).fill(1) : chunkBytes;
    this.capacity = Float64Array.from(pops, (pop) => {
      const capacityBytes =
        pop.capacityBytes ?? pop.capacityChunks! * Math.ceil(nominalBytes(scenario) / scenario.code.k);
      return isUniform ? Math.floor(capacityBytes / chunkBytes[0]!) : capacityBytes;
    });
    this.groupOf = this.groupObjects(scenario, system.replicas !== undefined, chunkBytes, placement.fork(2));
    const most = 2 * this.chunks + this.code.k * pops.length + 1;
    this.estimate = new Float64Array(most);
    this.arrival = new Float64Array(most);
    this.source = new Int32Array(most);
    this.forgetOrders();
  }

  /** Moves to a moment; returns whether latencies or availability changed. */
  advance(seconds: number): boolean {
    const changed = this.conditions.advance(seconds);
    if (changed) this.forgetOrders();
    return changed;
  }

  get groupCount(): number {
    return this.groups.length;
  }

  /** Reads one object of a group; `held` has per PoP its cached chunks: a bit mask, or a count when functional. */
  read(pop: number, group: number, held: ArrayLike<number>, draw: NoiseDraw, isCharged: boolean): ReadOutcome {
    const { outcome, arrival, source, code } = this;
    const own = Math.min(this.countOf(held[pop]!), code.k);
    const found = this.listCandidates(pop, group, held, own);
    const wanted = own >= code.k ? 0 : Math.min(found, code.k - own + this.delta);
    outcome.requests = own + wanted;
    outcome.fromOwn = own;
    outcome.fromPeers = 0;
    if (own + wanted < code.k) {
      outcome.ms = NaN;
      return outcome;
    }
    const { region } = this.groups[group]!;
    for (let s = 0; s < wanted; s++) {
      const from = source[s]!;
      if (from < 0) {
        arrival[s] = this.estimate[s]! * draw.peer[-1 - from]!;
        outcome.fromPeers++;
      } else {
        const r = region[from]!;
        arrival[s] = this.estimate[s]! * draw.chunk[from]! * draw.region[r]! * (isCharged ? this.load.factor(r) : 1);
        if (isCharged && own + s >= code.k) this.load.countExtra(r);
      }
    }
    if (isCharged) this.load.endRead();
    const ownMs = this.pops[pop]!.cacheLatencyMs * draw.own;
    for (let s = 0; s < own; s++) arrival[wanted + s] = ownMs;
    outcome.ms = nthSmallest(arrival, own + wanted, code.k);
    return outcome;
  }

  /** The same with this read's own noise, and its extra requests charged to the regions that serve them. */
  readActual(pop: number, object: number, held: ArrayLike<number>, seed: number): ReadOutcome {
    return this.read(pop, this.groupOf[object]!, held, this.noise.drawFor(seed), this.delta > 0);
  }

  /** Expected duration of a read; Infinity when it cannot be completed. */
  expectedMs(pop: number, group: number, held: ArrayLike<number>): number {
    let sum = 0;
    for (const draw of this.samples) sum += this.read(pop, group, held, draw, false).ms;
    return Number.isNaN(sum) ? Infinity : sum / this.samples.length;
  }

  /**
   * What a PoP should keep of a group's object when it keeps d chunks: of the k chunks that a read would use, given what
   * the peers hold, the d most distant ones. A count when functional, a bit mask otherwise.
   */
  chooseChunks(pop: number, group: number, d: number, held: ArrayLike<number>): number {
    if (this.functional) return d;
    const without = Array.from(held);
    without[pop] = 0;
    const found = Math.min(this.listCandidates(pop, group, without, 0), this.code.k);
    let mask = 0;
    for (let s = Math.max(0, found - d); s < found; s++) mask |= 1 << this.chunkAt[s]!;
    return mask;
  }

  /** What a PoP may expect of one chunk from each region under the present conditions, the time to transfer it left out. */
  regionLatencies(pop: number): LatencyEstimate[] {
    const { mean, deviation } = this.noise.chunkFactor;
    return Array.from(this.regionMs[pop]!, (ms, r) => {
      const now = ms * this.conditions.factor[r]!;
      return { meanMs: now * mean, sdMs: now * deviation };
    });
  }

  /** Region of every chunk of a group's objects that a read may ask for now, nearest first. */
  regionsOf(pop: number, group: number): number[] {
    return Array.from(this.orderOf(pop, group), (chunk) => this.groups[group]!.region[chunk]!);
  }

  /** How many chunks a held value stands for. */
  countOf(held: number): number {
    return this.functional ? held : bitCount(held);
  }

  private readonly chunkAt = new Int32Array(64);

  /** Fills the candidate lists with every source outside the own cache, nearest first; returns how many there are. */
  private listCandidates(pop: number, group: number, held: ArrayLike<number>, own: number): number {
    const peerMs = this.peerMs[pop]!;
    const { region, transferMs } = this.groups[group]!;
    const order = this.orderOf(pop, group);
    const mask = this.functional ? 0 : held[pop]!;
    let count = 0;
    let covered = mask;
    for (let s = 0; s < order.length; s++) {
      const c = order[s]!;
      if (mask & (1 << c)) continue;
      let ms = this.regionMs[pop]![region[c]!]! * this.conditions.factor[region[c]!]! + transferMs[pop]!;
      let from = c;
      covered |= 1 << c;
      if (this.joint && !this.functional) {
        for (let q = 0; q < peerMs.length; q++) {
          if (q === pop || !(held[q]! & (1 << c)) || peerMs[q]! >= ms) continue;
          ms = peerMs[q]!;
          from = -1 - q;
        }
      }
      this.insert(count++, ms, from, c);
    }
    if (!this.joint) return count;
    let rows = this.code.k - own;
    for (let q = 0; q < peerMs.length; q++) {
      if (q === pop || !Number.isFinite(peerMs[q]!)) continue;
      if (this.functional) {
        // PoPs keep different rows; there are k of them in all, so no more than k - own are new to this one.
        for (let row = Math.min(held[q]!, rows); row > 0; row--, rows--) this.insert(count++, peerMs[q]!, -1 - q, -1);
      } else {
        // A chunk whose region is down can still be at a peer.
        for (let c = 0; c < this.chunks; c++) {
          if (covered & (1 << c) || !(held[q]! & (1 << c))) continue;
          covered |= 1 << c;
          this.insert(count++, peerMs[q]!, -1 - q, c);
        }
      }
    }
    return count;
  }

  private insert(at: number, ms: number, from: number, chunk: number): void {
    const { estimate, source, chunkAt } = this;
    let s = at;
    for (; s > 0 && estimate[s - 1]! > ms; s--) {
      estimate[s] = estimate[s - 1]!;
      source[s] = source[s - 1]!;
      chunkAt[s] = chunkAt[s - 1]!;
    }
    estimate[s] = ms;
    source[s] = from;
    chunkAt[s] = chunk;
  }

  private orderOf(pop: number, group: number): Int32Array {
    return (this.order[pop]![group] ??= this.sortChunks(pop, group));
  }

  private sortChunks(pop: number, group: number): Int32Array {
    const { region } = this.groups[group]!;
    const ms = (c: number): number => this.regionMs[pop]![region[c]!]! * this.conditions.factor[region[c]!]!;
    const up = Array.from(region.keys())
      .filter((c) => this.conditions.down[region[c]!] === 0)
      .toSorted((a, b) => ms(a) - ms(b) || a - b);
    if (!this.dataOnly) return Int32Array.from(up);
    const data = up.filter((c) => c < this.code.k);
    const parity = up.filter((c) => c >= this.code.k).slice(0, this.code.k - data.length);
    return Int32Array.from([...data, ...parity].toSorted((a, b) => ms(a) - ms(b) || a - b));
  }

  private forgetOrders(): void {
    this.order = this.pops.map(() => []);
  }

  private groupObjects(
    scenario: Scenario,
    isReplicated: boolean,
    chunkBytes: Float64Array,
    random: Random,
  ): Int32Array {
    const known = new Map<string, number>();
    const sized = scenario.pops.some((pop) => pop.regionMbitPerSecond !== undefined);
    return Int32Array.from({ length: this.objects }, (_, object) => {
      const region = placeChunks(scenario, this.chunks, isReplicated ? object : 0, random);
      const key = `${region.join()}/${sized ? chunkBytes[object]! : ""}`;
      let group = known.get(key);
      if (group === undefined) {
        group = this.groups.length;
        known.set(key, group);
        const transferMs = Float64Array.from(scenario.pops, ({ regionMbitPerSecond }) =>
          regionMbitPerSecond ? (chunkBytes[object]! * 8) / (regionMbitPerSecond * 1000) : 0,
        );
        this.groups.push({ region, transferMs });
      }
      return group;
    });
  }
}

function bitCount(mask: number): number {
  let count = 0;
  for (let bits = mask; bits !== 0; bits &= bits - 1) count++;
  return count;
}

/** The n-th smallest of the first `count` numbers; sorts them in place. */
function nthSmallest(numbers: Float64Array, count: number, n: number): number {
  for (let i = 1; i < count; i++) {
    const number = numbers[i]!;
    let j = i;
    for (; j > 0 && numbers[j - 1]! > number; j--) numbers[j] = numbers[j - 1]!;
    numbers[j] = number;
  }
  return numbers[n - 1]!;
}
