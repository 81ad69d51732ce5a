/**
 * The PoP's cache as a policy of the solver sees it: objects are numbered slots, and what the policy decides is noted here
 * before anything is written. Pure.
 */
import { AgaroseError } from "@agarose/core";
import type { PolicyCache } from "@agarose/solver";
import type { CacheOptions, ValuedObject } from "./cache-options.ts";
import type { ObjectShape } from "./object-shape.ts";

/** What a slot stands for. */
export interface Slot extends ValuedObject {
  /** Requests per period, as the request monitor has them. */
  popularity: number;
  /** When it was last asked for, in the seconds that policies are told. */
  askedSeconds: number;
}

const NOTHING = new Float64Array(0);

export class SlotCache implements PolicyCache {
  readonly objects: number;
  readonly capacity: number;
  readonly chunkWeight: Float64Array;
  readonly #slots: (Slot | undefined)[];
  readonly #counts: Uint8Array;
  /** By slot and d, as far as they were asked for: policies ask again and again. */
  readonly #saved: (Float64Array | undefined)[];
  readonly #byKey = new Map<string, number>();
  readonly #byVersion = new Map<string, number>();
  #options: CacheOptions;
  #used = 0;

  /** @param capacity in bytes. */
  constructor(slots: number, capacity: number, options: CacheOptions) {
    this.objects = slots;
    this.capacity = capacity;
    this.#options = options;
    this.#slots = Array.from({ length: slots });
    this.#counts = new Uint8Array(slots);
    this.#saved = Array.from({ length: slots });
    this.chunkWeight = new Float64Array(slots).fill(1);
  }

  /** From now on `savedMs` answers by these. */
  set options(options: CacheOptions) {
    this.#options = options;
    this.#saved.fill(undefined);
  }

  get used(): number {
    return this.#used;
  }

  kOf(slot: number): number {
    return this.#slots[slot]?.object.k ?? 1;
  }

  countOf(slot: number): number {
    return this.#counts[slot]!;
  }

  savedMs(slot: number, d: number): number {
    return (this.#saved[slot] ??= this.#savedBy(slot))[d] ?? 0;
  }

  /** For a policy that reckons with busy regions. How busy they are is not measured: buckets are shared with the world. */
  get storage(): NonNullable<PolicyCache["storage"]> {
    const options = this.#options;
    return {
      latency: options.regions,
      utilization: 0,
      regionsOf: (slot) => {
        const object = this.#slots[slot]?.object;
        return object ? options.regionsOf(object) : [];
      },
    };
  }

  /** Throws INTERNAL when it does not fit: a policy's mistake. */
  keep(slot: number, d: number): void {
    const used = this.#used + (d - this.#counts[slot]!) * this.chunkWeight[slot]!;
    if (used > this.capacity || !(d >= 0 && d <= this.kOf(slot))) {
      throw new AgaroseError(
        "INTERNAL",
        `a policy would keep ${d} of ${this.kOf(slot)} chunks, and ${used} of ${this.capacity} bytes: this is a bug`,
        { slot, d, used, capacity: this.capacity },
      );
    }
    this.#used = used;
    this.#counts[slot] = d;
  }

  /** Keeps nothing of it, even while the others are still too much. */
  drop(slot: number): void {
    this.#used -= this.#counts[slot]! * this.chunkWeight[slot]!;
    this.#counts[slot] = 0;
  }

  at(slot: number): Slot | undefined {
    return this.#slots[slot];
  }

  /** The slot of a key; of keys with equal content, only one has a slot. */
  slotOfKey(key: string): number | undefined {
    return this.#byKey.get(key);
  }

  slotOfVersion(version: string): number | undefined {
    return this.#byVersion.get(version);
  }

  /** An empty slot, or that of the object which nobody has asked for longest before `seconds`, cached ones last. */
  freeSlot(seconds: number): number | undefined {
    let best: number | undefined;
    let bestSeconds = seconds;
    let isBestKept = true;
    for (let slot = 0; slot < this.objects; slot++) {
      const content = this.#slots[slot];
      if (!content) return slot;
      const isKept = this.#counts[slot]! > 0;
      if (content.askedSeconds >= seconds || (isKept && !isBestKept)) continue;
      if (content.askedSeconds >= bestSeconds && isKept === isBestKept) continue;
      [best, bestSeconds, isBestKept] = [slot, content.askedSeconds, isKept];
    }
    return best;
  }

  /** Has the slot stand for another object, or for none, of which nothing is kept. */
  assign(slot: number, content: Slot | undefined): void {
    this.drop(slot);
    this.#replace(slot, content);
  }

  /** Has the slot stand for another version of the same shape, of which as much is kept. */
  renew(slot: number, object: ObjectShape): void {
    this.#replace(slot, { ...this.#slots[slot]!, object });
  }

  /** What is restored may be more than fits by now: the capacity is a setting. */
  restore(slot: number, content: Slot, d: number): void {
    this.#replace(slot, content);
    this.#counts[slot] = d;
    this.#used += d * content.object.chunkBytes;
  }

  #savedBy(slot: number): Float64Array {
    const content = this.#slots[slot];
    if (!content) return NOTHING;
    return Float64Array.from({ length: content.object.k + 1 }, (_, d) => this.#options.savedMs(content, d));
  }

  #replace(slot: number, content: Slot | undefined): void {
    const before = this.#slots[slot]?.object;
    if (before) {
      this.#byKey.delete(before.key);
      this.#byVersion.delete(before.version);
    }
    this.#slots[slot] = content;
    this.#saved[slot] = undefined;
    this.chunkWeight[slot] = content?.object.chunkBytes ?? 1;
    if (!content) return;
    this.#byKey.set(content.object.key, slot);
    this.#byVersion.set(content.object.version, slot);
  }
}
