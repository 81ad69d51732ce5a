/**
 * The PoP's cache as a policy of the solver sees it: objects are numbered slots. It records the policy's decisions;
 * nothing is written yet. Pure.
 */

import { SolverError } from "../errors.ts";
import type { PolicyCache } from "../policy/policy.ts";
import { sameChunks } from "./cache-options.ts";
import type { CacheOptions, ValuedObject } from "./cache-options.ts";
import type { ObjectShape } from "./object-shape.ts";

/** The object of a slot. `popularity` is from the request monitor. */
export interface CacheSlot extends ValuedObject {
  /** Time of the last request, in seconds since 1970. */
  readonly askedSeconds: number;
}

const NOTHING = new Float64Array(0);
const NONE: readonly number[] = [];

/** All slots. */
export class SlotCache implements PolicyCache {
  readonly objects: number;
  readonly capacity: number;
  readonly chunkWeight: Float64Array;
  readonly writeMs: PolicyCache["writeMs"];
  /** Of each slot, as `CacheSlot` has them: numbers in lists take a fraction of the memory of objects. */
  readonly popularity: Float64Array;
  readonly askedSeconds: Float64Array;
  readonly #objects: (ObjectShape | undefined)[];
  /** Each placement once, because many objects share one. */
  readonly #placements = new Map<string, readonly string[]>();
  readonly #counts: Uint8Array;
  /** By slot and d, kept because policies ask repeatedly. */
  readonly #saved: (Float64Array | undefined)[];
  /** The last argument of `refresh`. */
  readonly #targets: (readonly number[])[];
  readonly #lastMs: Float64Array;
  readonly #lastPopularity: Float64Array;
  readonly #byKey = new Map<string, number>();
  readonly #byVersion = new Map<string, number>();
  /** Empty slots, the lowest last. */
  readonly #free: number[];
  /** When the present plan is made, in seconds since 1970. */
  #seconds = 0;
  /** Slots that it may give to other objects, the next one last; undefined before it needs one. */
  #victims: number[] | undefined;
  #options: CacheOptions;
  #used = 0;

  /**
   * @param capacity in bytes.
   * @param changeMs what a further chunk of an object costs, as milliseconds of a read. Default: unknown.
   */
  constructor(slots: number, capacity: number, options: CacheOptions, changeMs?: (object: ObjectShape) => number) {
    this.objects = slots;
    this.capacity = capacity;
    this.#options = options;
    this.popularity = new Float64Array(slots);
    this.askedSeconds = new Float64Array(slots).fill(-Infinity);
    this.#objects = Array.from({ length: slots });
    this.#counts = new Uint8Array(slots);
    this.#saved = Array.from({ length: slots });
    this.#targets = Array.from({ length: slots }, () => NONE);
    this.#lastMs = new Float64Array(slots);
    this.#lastPopularity = new Float64Array(slots);
    this.#free = Array.from({ length: slots }, (_, i) => slots - 1 - i);
    this.chunkWeight = new Float64Array(slots).fill(1);
    // Policies ask for slots with an object.
    this.writeMs = changeMs && ((slot) => changeMs(this.#objects[slot]!));
  }

  set options(options: CacheOptions) {
    this.#options = options;
    this.#saved.fill(undefined);
  }

  /** Begins a plan, in which only objects that were requested before `seconds` give way to others. */
  beginPlan(seconds: number): void {
    this.#seconds = seconds;
    this.#victims = undefined;
  }

  /**
   * Takes which chunks of the slot's object the cache shall have, and how popular it is. Returns whether that changes
   * what its chunks save.
   */
  refresh(slot: number, target: readonly number[] = NONE): boolean {
    const content = this.at(slot);
    if (!content) return false;
    const cacheMs = this.#options.cacheMsOf(content);
    // Beside reads at peers it matters how many there are here.
    const popularity = this.#options.requestsElsewhere(content.object) > 0 ? content.popularity : 0;
    const isSame = cacheMs === this.#lastMs[slot] && popularity === this.#lastPopularity[slot];
    if (isSame && sameChunks(target, this.#targets[slot]!)) return false;
    this.#lastMs[slot] = cacheMs;
    this.#lastPopularity[slot] = popularity;
    this.#targets[slot] = target;
    this.#options.forget(content.object.version);
    this.#saved[slot] = undefined;
    return true;
  }

  get known(): number {
    return this.#byKey.size;
  }

  get used(): number {
    return this.#used;
  }

  /** Chunks that a read of the slot's object needs. */
  kOf(slot: number): number {
    return this.#objects[slot]?.k ?? 1;
  }

  countOf(slot: number): number {
    return this.#counts[slot]!;
  }

  /** Milliseconds that keeping d chunks saves a read. */
  savedMs(slot: number, d: number): number {
    return (this.#saved[slot] ??= this.#savedBy(slot))[d] ?? 0;
  }

  /** For policies that model busy regions. Utilization is 0: buckets are shared, so a PoP cannot measure it. */
  get storage(): NonNullable<PolicyCache["storage"]> {
    const options = this.#options;
    return {
      latency: options.regions,
      utilization: 0,
      regionsOf: (slot) => {
        const object = this.#objects[slot];
        return object ? options.regionsOf(object) : [];
      },
    };
  }

  /** For policies that replace by what peers hold. */
  get peers(): NonNullable<PolicyCache["peers"]> {
    return {
      chunksBeside: (slot) => {
        const content = this.at(slot);
        return content ? this.#options.chunksBeside(content, this.#counts[slot]!) : 0;
      },
      hits: (slot) => {
        const object = this.#objects[slot];
        return object ? this.#options.requestsElsewhere(object) : 0;
      },
    };
  }

  /** Keeps d chunks. Throws INTERNAL when they do not fit: a policy's mistake. */
  keep(slot: number, d: number): void {
    const used = this.#used + (d - this.#counts[slot]!) * this.chunkWeight[slot]!;
    if (used > this.capacity || !(d >= 0 && d <= this.kOf(slot))) {
      throw new SolverError(
        "INTERNAL",
        `a policy would keep ${d} of ${this.kOf(slot)} chunks, and ${used} of ${this.capacity} bytes: this is a bug`,
        { slot, d, used, capacity: this.capacity },
      );
    }
    this.#used = used;
    this.#counts[slot] = d;
  }

  /** Keeps nothing of a slot, even while the others exceed the capacity. */
  drop(slot: number): void {
    this.#used -= this.#counts[slot]! * this.chunkWeight[slot]!;
    this.#counts[slot] = 0;
  }

  /** Returns the object of a slot, or undefined for an empty slot. */
  at(slot: number): CacheSlot | undefined {
    const object = this.#objects[slot];
    return object && { object, popularity: this.popularity[slot]!, askedSeconds: this.askedSeconds[slot]! };
  }

  /** Returns the slot of a key. Of several keys with equal content, only one has a slot. */
  slotOfKey(key: string): number | undefined {
    return this.#byKey.get(key);
  }

  slotOfVersion(version: string): number | undefined {
    return this.#byVersion.get(version);
  }

  /** Returns an empty slot, else the least recently requested one before this plan, cached objects last. */
  freeSlot(): number | undefined {
    for (let slot = this.#free.pop(); slot !== undefined; slot = this.#free.pop()) {
      if (!this.#objects[slot]) return slot;
    }
    this.#victims ??= this.#leastRecent();
    for (let slot = this.#victims.pop(); slot !== undefined; slot = this.#victims.pop()) {
      if (this.askedSeconds[slot]! < this.#seconds) return slot;
    }
    return undefined;
  }

  /** Returns the slots whose objects were not requested in this plan: in reverse of the order of `freeSlot`. */
  #leastRecent(): number[] {
    const isKept = (slot: number): number => Math.min(1, this.#counts[slot]!);
    const { askedSeconds } = this;
    return Array.from(askedSeconds.keys())
      .filter((slot) => askedSeconds[slot]! < this.#seconds)
      .toSorted((a, b) => isKept(b) - isKept(a) || askedSeconds[b]! - askedSeconds[a]! || b - a);
  }

  /** Assigns another object, or none, and keeps nothing of it. */
  assign(slot: number, content: CacheSlot | undefined): void {
    this.drop(slot);
    this.#replace(slot, content);
  }

  /** Assigns another version of the same shape, and keeps as much of it. */
  renew(slot: number, object: ObjectShape): void {
    this.#replace(slot, { ...this.at(slot)!, object });
  }

  /** Restores a slot, even beyond the capacity, which an operator may have reduced. */
  restore(slot: number, content: CacheSlot, d: number): void {
    this.#replace(slot, content);
    this.#counts[slot] = d;
    this.#used += d * content.object.chunkBytes;
  }

  #savedBy(slot: number): Float64Array {
    const content = this.at(slot);
    return content ? this.#options.savedMs(content) : NOTHING;
  }

  #replace(slot: number, content: CacheSlot | undefined): void {
    const before = this.#objects[slot];
    if (before) {
      this.#byKey.delete(before.key);
      this.#byVersion.delete(before.version);
    }
    const object = content && this.#sharing(content.object);
    this.#objects[slot] = object;
    this.popularity[slot] = content?.popularity ?? 0;
    this.askedSeconds[slot] = content?.askedSeconds ?? -Infinity;
    this.#saved[slot] = undefined;
    this.chunkWeight[slot] = object?.chunkBytes ?? 1;
    if (!object) {
      if (before) this.#free.push(slot);
      return;
    }
    this.#byKey.set(object.key, slot);
    this.#byVersion.set(object.version, slot);
  }

  #sharing(object: ObjectShape): ObjectShape {
    const name = object.placement.join();
    const placement = this.#placements.get(name) ?? object.placement;
    this.#placements.set(name, placement);
    return placement === object.placement ? object : { ...object, placement };
  }
}
