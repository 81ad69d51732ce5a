/** The caches of all PoPs in one run of one system: what they hold, whether it fits, how often they were written. */
import { SolverError } from "../errors.ts";
import type { LatencyLaw } from "../options/latency.ts";
import type { PolicyCache, StorageView } from "../policy/policy.ts";
import { bitCount } from "./numbers.ts";
import type { SimulatedWorld } from "./world.ts";

/** The contents of all caches. */
export class Caches {
  readonly world: SimulatedWorld;
  /** Per object and PoP (object x PoPs + pop): a bit mask of chunks, functional ones after the stored. */
  readonly held: Int32Array;
  readonly used: Float64Array;
  /** Values written into each PoP's KV; removals do not count. */
  readonly writes: Float64Array;
  /** The value in KV, by place in `held`, of later changes; undefined where every change is written at once. */
  readonly #unwritten: Map<number, number>[] | undefined;
  readonly #scratch: Int32Array;

  /** @param writesLater whether changes are written by `write`, and lie in a tier that costs no write until then. */
  constructor(world: SimulatedWorld, writesLater = false) {
    this.world = world;
    this.held = new Int32Array(world.objects * world.pops.length);
    this.used = new Float64Array(world.pops.length);
    this.writes = new Float64Array(world.pops.length);
    if (writesLater) this.#unwritten = world.pops.map(() => new Map());
    this.#scratch = new Int32Array(world.pops.length);
  }

  /** The chunks of an object at every PoP, as a live view. */
  heldOf(object: number): Int32Array {
    const pops = this.world.pops.length;
    return this.held.subarray(object * pops, (object + 1) * pops);
  }

  countOf(pop: number, object: number): number {
    return bitCount(this.held[object * this.world.pops.length + pop]!);
  }

  /** Keeps d chunks of the object at the PoP: the best ones by present latencies. */
  keep(pop: number, object: number, d: number): void {
    const { world } = this;
    const others = this.#scratch;
    others.set(this.heldOf(object));
    if (!world.joint) others.fill(0);
    this.hold(pop, object, d === 0 ? 0 : world.chooseChunks(pop, world.groupOf[object]!, d, others));
  }

  /** Sets what the PoP holds of the object. Throws INTERNAL when it does not fit, which is a mistake of the policy. */
  hold(pop: number, object: number, next: number): void {
    const { world } = this;
    const at = object * world.pops.length + pop;
    const before = this.held[at]!;
    if (next === before) return;
    const weight = world.chunkWeight[object]!;
    const used = this.used[pop]! + (bitCount(next) - bitCount(before)) * weight;
    if (used > world.capacity[pop]!) {
      throw new SolverError("INTERNAL", `the cache would hold ${used}, above its capacity ${world.capacity[pop]}`, {
        pop,
        object,
        used,
      });
    }
    this.used[pop] = used;
    this.held[at] = next;
    const unwritten = this.#unwritten?.[pop];
    if (unwritten && !unwritten.has(at)) unwritten.set(at, before);
    if (next !== 0 && !unwritten) this.writes[pop]!++;
  }

  /** Writes into the PoP's KV what has changed since the last call. */
  write(pop: number): void {
    const unwritten = this.#unwritten?.[pop];
    for (const [at, before] of unwritten ?? []) {
      if (this.held[at] !== before && this.held[at] !== 0) this.writes[pop]!++;
    }
    unwritten?.clear();
  }
}

/** One PoP's cache as its policy sees it, without peers. Latencies are those of the last measurement. */
export class SinglePopCache implements PolicyCache {
  readonly objects: number;
  readonly capacity: number;
  readonly chunkWeight: Float64Array;
  readonly #caches: Caches;
  readonly #pop: number;
  readonly #k: number;
  readonly #saved: Float64Array;
  #latency: readonly LatencyLaw[] = [];

  constructor(caches: Caches, pop: number) {
    const { world } = caches;
    this.#caches = caches;
    this.#pop = pop;
    this.objects = world.objects;
    this.#k = world.code.k;
    this.capacity = world.capacity[pop]!;
    this.chunkWeight = world.chunkWeight;
    this.#saved = new Float64Array(world.groupCount * (this.#k + 1));
    this.measure();
  }

  /** Updates `savedMs` and `storage` to the present latencies. */
  measure(): void {
    const { world } = this.#caches;
    this.#latency = world.regionLatencies(this.#pop);
    const held = new Int32Array(world.pops.length);
    for (let group = 0; group < world.groupCount; group++) {
      held.fill(0);
      const without = world.expectedMs(this.#pop, group, held);
      for (let d = 1; d <= this.#k; d++) {
        held[this.#pop] = 0;
        held[this.#pop] = world.chooseChunks(this.#pop, group, d, held);
        const ms = world.expectedMs(this.#pop, group, held);
        // A read that is impossible without the cache has no latency, so it counts as a very slow one.
        const gain = Number.isFinite(without) ? without - ms : Number.isFinite(ms) ? IMPOSSIBLE_READ_MS : 0;
        this.#saved[group * (this.#k + 1) + d] = Math.max(0, gain);
      }
    }
  }

  get used(): number {
    return this.#caches.used[this.#pop]!;
  }

  kOf(): number {
    return this.#k;
  }

  countOf(object: number): number {
    return this.#caches.countOf(this.#pop, object);
  }

  savedMs(object: number, d: number): number {
    return this.#saved[this.#caches.world.groupOf[object]! * (this.#k + 1) + d]!;
  }

  keep(object: number, d: number): void {
    this.#caches.keep(this.#pop, object, d);
  }

  get storage(): StorageView {
    const { world } = this.#caches;
    return {
      latency: this.#latency,
      utilization: world.utilization,
      regionsOf: (object) => world.regionsOf(this.#pop, world.groupOf[object]!),
    };
  }
}

const IMPOSSIBLE_READ_MS = 60_000;
