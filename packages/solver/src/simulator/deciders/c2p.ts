/**
 * C2P (ICDCN 2015): cooperating PoPs, each of which evicts by what all of them hold. They exchange what they hold and
 * how often it is read (`cooperation/cache-events.ts`). They evict objects that are not wholly cached before those that
 * are (`cooperation/replacement.ts`), so that the caches together hold whole objects.
 *
 * Departures, beside those of the parts: the paper's nodes store the segments that they cache. Here a PoP caches what
 * its own reads had to fetch from the regions, unless it knows that a peer holds it. An object leaves a PoP with all
 * its chunks there. Peers exchange all that they hold every `digestSeconds`, because their network may lose messages;
 * the paper's broker loses none.
 */
import * as v from "valibot";
import { checked, integer, number } from "../../checked.ts";
import type { Random } from "../../random.ts";
import type { Caches } from "../cache-state.ts";
import { bitCount } from "../numbers.ts";
import type { Decider } from "./decider.ts";
import { Wire, WIRE_SETTINGS } from "./wire.ts";
import { CacheEvents } from "../../cooperation/cache-events.ts";
import type { CacheMessage } from "../../cooperation/cache-message.ts";
import { ObjectsInCache } from "../../cooperation/objects-in-cache.ts";
import { decayedHits } from "../../cooperation/hit-decay.ts";
import { chooseVictim } from "../../cooperation/replacement.ts";

const eventSettings = {
  /** Algorithm 1's temporal affinity threshold, which the paper does not print. */
  affinitySeconds: v.optional(number(0), 30),
  gatherMs: v.optional(number(1), 200),
  statementsMax: v.optional(integer(1), 256),
  digestSeconds: v.optional(number(0.1), 60),
};
const settingsSchema = v.strictObject({ ...eventSettings, ...WIRE_SETTINGS });

/** The settings of the exchange of cache events, which PoPs that decide by periods do not have. */
export const EVENT_SETTINGS: readonly string[] = Object.keys(eventSettings);

/** Decides for all PoPs of a system by C2P. */
export class C2pDecider implements Decider {
  readonly wantsTruth = false;
  readonly #caches: Caches;
  readonly #settings: v.InferOutput<typeof settingsSchema>;
  readonly #wire: Wire<CacheMessage>;
  readonly #events: CacheEvents[];
  readonly #tables: ObjectsInCache[];
  /** Per PoP: the objects it holds, least recently read first, with their reads there. */
  readonly #kept: Map<number, { hits: number; readMs: number }>[];
  #nextDigestMs: number;

  constructor(caches: Caches, settings: Readonly<Record<string, unknown>>, random: Random) {
    const { pops } = caches.world;
    this.#caches = caches;
    this.#settings = checked(settingsSchema, settings, "c2p");
    this.#wire = new Wire(pops, this.#settings, random);
    const { gatherMs, statementsMax, digestSeconds } = this.#settings;
    this.#events = pops.map(({ name }) => new CacheEvents(name, { gatherMs, statementsMax }));
    this.#tables = pops.map(() => new ObjectsInCache());
    this.#kept = pops.map(() => new Map());
    this.#nextDigestMs = digestSeconds * 1000;
  }

  /** Messages sent so far, by sender, counting each recipient. */
  get messages(): Float64Array {
    return this.#wire.sent;
  }

  onRequest(pop: number, object: number, seconds: number): void {
    const nowMs = seconds * 1000;
    this.#exchange(nowMs);
    this.#events[pop]!.recordRead(String(object), nowMs);
    this.#touch(pop, object, nowMs);
    const missing = this.#missingOf(pop, object);
    if (missing > 0) this.#admit(pop, object, missing, nowMs);
  }

  onPeriod(seconds: number): void {
    this.#exchange(seconds * 1000);
  }

  /** Sends and delivers all messages that are due by now, each at its own moment. */
  #exchange(nowMs: number): void {
    for (const [from, events] of this.#events.entries()) {
      while (events.dueMs <= nowMs) this.#send(from, events.take(events.dueMs)!);
    }
    for (; this.#nextDigestMs <= nowMs; this.#nextDigestMs += this.#settings.digestSeconds * 1000) {
      for (const [from, events] of this.#events.entries()) this.#send(from, events.digest(this.#nextDigestMs));
    }
    for (const { to, message } of this.#wire.take(nowMs)) this.#tables[to]!.merge(message);
  }

  #send(from: number, message: CacheMessage): void {
    this.#wire.send(from, message, message.statedMs);
  }

  /** Chunks that a read at the PoP had to fetch from the regions, by what the PoP knows of its peers. */
  #missingOf(pop: number, object: number): number {
    const { world } = this.#caches;
    const believed = this.#believedOf(pop, object);
    const stored = believed.reduce((union, mask) => union | mask) & ((1 << world.chunks) - 1);
    const rows = believed.reduce((count, mask) => count + bitCount(mask >> world.chunks), 0);
    return Math.max(0, world.code.k - bitCount(stored) - rows);
  }

  /** The chunks of the object in every PoP, to this PoP's knowledge: its own contents, and what the others stated. */
  #believedOf(pop: number, object: number): Int32Array {
    const { world } = this.#caches;
    const holders = this.#tables[pop]!.replicasOf(String(object));
    return Int32Array.from(world.pops, ({ name }, q) => {
      if (q === pop) return this.#caches.heldOf(object)[pop]!;
      return world.maskOf(q, holders.get(name) ?? []);
    });
  }

  #admit(pop: number, object: number, missing: number, nowMs: number): void {
    const { world } = this.#caches;
    const weight = world.chunkWeight[object]!;
    const free = (): number => world.capacity[pop]! - this.#caches.used[pop]!;
    while (free() < missing * weight) {
      const victim = chooseVictim(this.#candidates(pop, object, nowMs), this.#settings.affinitySeconds * 1000);
      if (!victim) break;
      this.#hold(pop, victim.object, 0, nowMs);
    }
    const room = Math.min(missing, Math.floor(free() / weight));
    if (room > 0) this.#hold(pop, object, this.#withMore(pop, object, room), nowMs);
  }

  /** The PoP's chunks after it adds `more`: the most distant ones of those that a read lacks. */
  #withMore(pop: number, object: number, more: number): number {
    const { world } = this.#caches;
    const believed = this.#believedOf(pop, object);
    const own = believed[pop]!;
    if (world.functional) return own | world.rows(bitCount(own), more);
    const elsewhere = believed.reduce((union, mask, q) => (q === pop ? union : union | mask), 0);
    let next = own;
    for (let d = 1; d <= world.code.k && bitCount(next) < bitCount(own) + more; d++) {
      next |= world.chooseChunks(pop, world.groupOf[object]!, d, believed) & ~elsewhere;
    }
    return next;
  }

  *#candidates(pop: number, except: number, nowMs: number): Iterable<Candidate> {
    const table = this.#tables[pop]!;
    for (const [object, { hits, readMs }] of this.#kept[pop]!) {
      if (object === except) continue;
      const key = String(object);
      const own = this.#caches.world.indicesOf(pop, this.#caches.heldOf(object)[pop]!);
      yield {
        object,
        oic: table.oic(key, this.#caches.world.code.k, own),
        hits: decayedHits(hits, readMs, nowMs) + table.hits(key, nowMs),
        readMs: Math.max(readMs, table.readMs(key, nowMs)),
      };
    }
  }

  #hold(pop: number, object: number, held: number, nowMs: number): void {
    this.#caches.hold(pop, object, held);
    this.#events[pop]!.recordHeld(String(object), this.#caches.world.indicesOf(pop, held), nowMs);
    if (held === 0) this.#kept[pop]!.delete(object);
    else if (!this.#kept[pop]!.has(object)) this.#kept[pop]!.set(object, { hits: 1, readMs: nowMs });
  }

  #touch(pop: number, object: number, nowMs: number): void {
    const known = this.#kept[pop]!.get(object);
    if (!known) return;
    this.#kept[pop]!.delete(object);
    this.#kept[pop]!.set(object, { hits: decayedHits(known.hits, known.readMs, nowMs) + 1, readMs: nowMs });
  }
}

interface Candidate {
  readonly object: number;
  readonly oic: number;
  readonly hits: number;
  readonly readMs: number;
}
