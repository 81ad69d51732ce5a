/**
 * One simulated PoP that plans as deployed ones do: the same planner, the same messages and the same view of its peers.
 * Only what it plans by is simulated: latencies, requests, and the messages' way.
 */
import { PeerTable } from "../../cooperation/peer-table.ts";
import type { PeerMessage } from "../../cooperation/peer-message.ts";
import { peerView, type PeerReport, type PeerView } from "../../cooperation/peer-view.ts";
import { isFirst, nextTurn, type Ticket } from "../../cooperation/turns.ts";
import type { RegionEstimate } from "../../options/sources.ts";
import type { CachedObject, ObjectShape } from "../../planner/object-shape.ts";
import { Planner, SLOTS } from "../../planner/planner.ts";
import { COMPARED } from "../../policies/compared.ts";
import type { PlannedContents } from "../../planner/plan.ts";
import { PeriodPopularity } from "../../policy/period-popularity.ts";
import type { Caches } from "../cache-state.ts";
import { bitCount } from "../numbers.ts";

/** Weight of the newest period, as in the PoP's request monitor (Agar, section IV-A). */
const ALPHA = 0.8;
/** Popular keys in a message, as in PoPs. */
const POPULAR_MAX = 500;
/** Requests that an oracle replays in place of a period's. */
const ORACLE_REQUESTS = 20_000;

/** A PoP with its own knowledge. */
export class PlannedPop {
  readonly pop: number;
  readonly #caches: Caches;
  readonly #policy: string;
  readonly #shapes: readonly ObjectShape[];
  readonly #neighbours: readonly number[];
  readonly #popularity: PeriodPopularity;
  readonly #table = new PeerTable();
  #counts: Uint32Array;
  #asked: Uint32Array;
  #regions: readonly RegionEstimate[] = [];
  #planner: Planner | undefined;
  #turn = 0;
  #configuration = 0;
  #statedMs = 0;

  /** `shapes`: all objects, which all PoPs share. `neighbours`: the PoPs that this one cooperates with. */
  constructor(
    pop: number,
    caches: Caches,
    policy: string,
    shapes: readonly ObjectShape[],
    neighbours: readonly number[],
  ) {
    this.pop = pop;
    this.#caches = caches;
    this.#policy = policy;
    this.#shapes = shapes;
    this.#neighbours = neighbours;
    this.#popularity = new PeriodPopularity(shapes.length, ALPHA);
    this.#counts = new Uint32Array(shapes.length);
    this.#asked = new Uint32Array(shapes.length);
    this.measure();
  }

  record(object: number): void {
    this.#popularity.record(object);
    this.#counts[object]! += 1;
  }

  /** Measures the present latencies of the regions. */
  measure(): void {
    const { world } = this.#caches;
    const { regionMbitPerSecond: rate } = world.pops[this.pop]!;
    this.#regions = world.regionLatencies(this.pop).map(({ meanMs, sdMs = 0 }, r) => {
      const msPerByte = rate ? 8 / (rate * 1000) : 0;
      return {
        name: String(r),
        meanMs,
        sdMs,
        msPerByte,
        down: world.conditions.down[r] === 1,
        utilization: world.utilization,
      };
    });
  }

  /** Closes the period: what was counted is replayed by the next plan. */
  endPeriod(): void {
    this.#popularity.endPeriod();
    [this.#asked, this.#counts] = [this.#counts, this.#asked];
    this.#counts.fill(0);
  }

  /** Sets the true request rates, for an oracle: requests per period. */
  setTruth(probability: Float64Array): void {
    const { demand } = this.#caches.world.pops[this.pop]!;
    for (const [o, share] of probability.entries()) {
      this.#popularity.popularity[o] = demand * ORACLE_REQUESTS * share;
      this.#asked[o] = Math.round(demand * ORACLE_REQUESTS * share);
    }
  }

  /** Returns what this PoP says now: all that it holds and what it knows of demand and distances, or its news only. */
  message(nowMs: number, isComplete: boolean): PeerMessage {
    const { world } = this.#caches;
    // A later statement must be of a later moment.
    this.#statedMs = Math.max(nowMs, this.#statedMs + 1e-3);
    const statements = this.#shapes.flatMap(({ version }, o) => {
      const chunks = this.#chunksOf(o);
      return chunks.length > 0 || !isComplete ? [{ key: version, chunks, hits: 0, readMs: 0 }] : [];
    });
    const { popularity } = this.#popularity;
    const popular = Array.from(popularity.keys())
      .filter((o) => popularity[o]! > 0)
      .toSorted((a, b) => popularity[b]! - popularity[a]!)
      .slice(0, POPULAR_MAX)
      .map((o) => [this.#shapes[o]!.key, popularity[o]!] as const);
    const peers = this.#neighbours.flatMap((q) => this.#distanceTo(world.pops[q]!.name, q));
    const cache = { node: this.#name, epoch: 1, statedMs: this.#statedMs, isComplete, statements };
    const base = { to: "all", turn: this.#turn, configuration: this.#configuration, cache };
    return isComplete ? { ...base, popularity: { popular, regions: this.#regions, peers } } : base;
  }

  /** Merges what a peer has said. */
  receive(message: PeerMessage, nowMs: number): void {
    this.#table.merge(message, nowMs);
  }

  /** Whether it is this PoP's turn, by all it knows. */
  isFirst(nowMs: number): boolean {
    return isFirst(this.#ticket, this.#tickets(nowMs));
  }

  /**
   * Plans a period, and applies the plan and writes it into KV if it may change the cache. `isOracle`: by the truth
   * only.
   */
  plan(nowMs: number, mayChange: boolean, isOracle = false): void {
    const planned = this.#plan(nowMs, this.#asked, { mayChange, isOracle });
    if (!isOracle) this.#asked.fill(0);
    if (!mayChange) return;
    this.#apply(planned);
    this.#caches.write(this.pop);
    this.#configuration++;
    this.#turn = nextTurn(this.#ticket, this.#tickets(nowMs));
  }

  /** Exchanges what the requests since the last plan or exchange ask for. Peers and KV learn nothing of it. */
  exchange(nowMs: number): void {
    this.#apply(this.#plan(nowMs, this.#counts, { isExchange: true }));
    this.#counts.fill(0);
  }

  #plan(
    nowMs: number,
    asked: Uint32Array,
    { mayChange = true, isOracle = false, isExchange = false },
  ): readonly PlannedContents[] {
    const { popularity } = this.#popularity;
    const planner = isOracle ? this.#createPlanner("exact") : (this.#planner ??= this.#createPlanner(this.#policy));
    const { planned, error } = planner.plan({
      nowMs,
      requests: Array.from(popularity.keys())
        .filter((o) => popularity[o]! > 0 || asked[o]! > 0)
        .toSorted((a, b) => popularity[b]! - popularity[a]!)
        .map((o) => ({ key: this.#shapes[o]!.key, requests: asked[o]!, popularity: popularity[o]! })),
      objects: new Map(this.#shapes.map((shape) => [shape.key, shape])),
      regions: this.#regions,
      ledger: this.#ledger(),
      peers: this.#view(nowMs),
      mayChange,
      isExchange,
    });
    if (error !== undefined) throw error;
    return planned;
  }

  #createPlanner(policy: string): Planner {
    const { world } = this.#caches;
    return new Planner({
      policy,
      policies: COMPARED,
      capacityBytes: this.#capacityBytes,
      slots: Math.min(SLOTS, this.#shapes.length),
      cacheMs: world.pops[this.pop]!.cacheLatencyMs,
      delta: world.delta,
      decodeMs: world.decodeMs,
      recovered: world.recovered,
      functionalPop: world.functional ? this.pop : undefined,
    });
  }

  get #name(): string {
    return this.#caches.world.pops[this.pop]!.name;
  }

  get #ticket(): Ticket {
    return { pop: this.#name, turn: this.#turn };
  }

  get #capacityBytes(): number {
    const { capacity, chunkWeight, chunkBytes } = this.#caches.world;
    // The weights of objects of one size are 1.
    return capacity[this.pop]! * (chunkWeight[0] === 1 ? chunkBytes[0]! : 1);
  }

  #tickets(nowMs: number): Ticket[] {
    const { pops } = this.#caches.world;
    return this.#table.tickets(
      this.#neighbours.map((q) => pops[q]!.name),
      nowMs,
    );
  }

  #view(nowMs: number): PeerView {
    const { world } = this.#caches;
    const peers = this.#neighbours.flatMap((q): PeerReport[] => {
      const { name } = world.pops[q]!;
      if (this.#table.isSilent(name, nowMs)) return [];
      const held = new Map(this.#table.cache.contentsOf(name));
      const popularity = this.#table.record(name)?.popularity;
      return this.#distanceTo(name, q).map(({ meanMs, sdMs }) => ({ name, meanMs, sdMs, held, popularity }));
    });
    const { cacheLatencyMs: cacheMs } = world.pops[this.pop]!;
    return peerView({ pop: this.#name, peers, cacheMs, delta: world.delta });
  }

  /** Nothing without a connection. */
  #distanceTo(name: string, peer: number): RegionEstimate[] {
    const { meanMs, sdMs } = this.#caches.world.peerLatency(this.pop, peer);
    return Number.isFinite(meanMs) ? [{ name, meanMs, sdMs, down: false }] : [];
  }

  #ledger(): Map<string, CachedObject> {
    return new Map(
      this.#shapes.map(({ version }, o) => {
        const chunks = this.#chunksOf(o);
        return [version, { stripes: 1, chunks, target: chunks, done: 1 }];
      }),
    );
  }

  #chunksOf(object: number): number[] {
    return this.#caches.world.indicesOf(this.pop, this.#caches.heldOf(object)[this.pop]!);
  }

  #apply(planned: readonly PlannedContents[]): void {
    const { world } = this.#caches;
    const held = new Int32Array(world.objects);
    for (const { object, chunks } of planned) {
      held[Number(object.key)] = world.maskOf(this.pop, chunks);
    }
    for (const isGrowing of [false, true]) {
      for (let o = 0; o < world.objects; o++) {
        if (bitCount(held[o]!) > this.#caches.countOf(this.pop, o) !== isGrowing) continue;
        this.#caches.hold(this.pop, o, held[o]!);
      }
    }
  }
}

/** Returns the objects of a world as a planner sees them; the key is the object's number, and so is the version. */
export function shapesOf({ world }: Caches): ObjectShape[] {
  const { k, m } = world.code;
  return Array.from({ length: world.objects }, (_, o) => ({
    key: String(o),
    version: String(o),
    k,
    m,
    placement: Array.from(world.placementOf(world.groupOf[o]!), String),
    stripes: 1,
    chunkBytes: world.chunkBytes[o]!,
    shardBytes: world.chunkBytes[o]!,
  }));
}
