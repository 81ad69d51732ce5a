/**
 * PoPs that read from each other and place together, as deployed ones do. Each plans by its own view: at the end of a
 * period it sends its peers a digest, waits for its turn, plans by what it has received, and sends what it holds then.
 * Messages take their time, so a view may be outdated.
 */
import * as v from "valibot";
import { checked, integer } from "../../checked.ts";
import { COMPARED } from "../../policies/compared.ts";
import { policyNamed } from "../../policies/registry.ts";
import { NEAREST_MAX, nearestPeers } from "../../cooperation/neighbours.ts";
import type { PeerMessage } from "../../cooperation/peer-message.ts";
import type { Random } from "../../random.ts";
import type { Caches } from "../cache-state.ts";
import type { SystemSpec } from "../scenario/scenario.ts";
import type { Decider } from "./decider.ts";
import { PlannedPop, shapesOf } from "./planned-pop.ts";
import { Wire, WIRE_SETTINGS } from "./wire.ts";

/** A PoP that has waited so long for its turn goes in the next period. */
const TURN_WAIT_MS = 25_000;
/** PoPs gather news for so long before they send it (C2P, ICDCN 2015, section 3.2). */
const GATHER_MS = 200;
/** How often an oracle lets every PoP improve its cache. */
const ORACLE_ROUNDS = 3;

const settingsSchema = v.strictObject({ nearest: v.optional(integer(1), NEAREST_MAX), ...WIRE_SETTINGS });

/** Decides for all PoPs of a system, in turns. */
export class TurnDecider implements Decider {
  readonly wantsTruth: boolean;
  readonly #pops: readonly PlannedPop[];
  readonly #wire: Wire<PeerMessage>;
  /** News that PoPs will send, oldest first. */
  #unsent: { readonly pop: PlannedPop; readonly dueMs: number }[] = [];
  /** When each PoP began to wait for its turn. */
  readonly #waiting = new Map<PlannedPop, number>();
  #nowMs = 0;

  /** Throws SCENARIO_INVALID for an unknown policy or setting. */
  constructor(caches: Caches, { policy, settings }: SystemSpec, random: Random) {
    policyNamed(policy, COMPARED);
    const { nearest, ...wire } = checked(settingsSchema, settings, policy);
    const { pops } = caches.world;
    const shapes = shapesOf(caches);
    this.wantsTruth = policy === "clairvoyant";
    const neighbours = neighboursIn(caches, nearest);
    this.#pops = pops.map((_, pop) => new PlannedPop(pop, caches, policy, shapes, neighbours[pop]!));
    this.#wire = new Wire(pops, wire, random, neighbours);
  }

  /** Messages sent so far, by sender, counting each recipient. */
  get messages(): Float64Array {
    return this.#wire.sent;
  }

  onRequest(pop: number, object: number, seconds: number): void {
    this.#advance(seconds * 1000);
    this.#pops[pop]!.record(object);
  }

  onPeriod(seconds: number): void {
    const nowMs = seconds * 1000;
    this.#advance(nowMs);
    if (this.wantsTruth) return;
    for (const pop of this.#waiting.keys()) this.#giveUp(pop);
    for (const pop of this.#pops) {
      // As at PoPs, a digest states the demand of the periods before the one that ends now.
      this.#wire.send(pop.pop, pop.message(nowMs, true), nowMs);
      pop.endPeriod();
      this.#waiting.set(pop, nowMs);
    }
    this.#advance(nowMs);
  }

  /** A PoP that waits for its turn is in its period. */
  onExchange(seconds: number): void {
    const nowMs = seconds * 1000;
    this.#advance(nowMs);
    if (this.wantsTruth) return;
    for (const pop of this.#pops) if (!this.#waiting.has(pop)) pop.exchange(nowMs);
  }

  onLatency(seconds: number): void {
    for (const pop of this.#pops) pop.measure();
    if (this.wantsTruth) this.#planAll(seconds * 1000);
  }

  onTruth(probability: Float64Array, seconds: number): void {
    for (const pop of this.#pops) pop.setTruth(probability);
    this.#planAll(seconds * 1000);
  }

  /** Delivers, sends and plans all that is due by now, each at its own moment. */
  #advance(nowMs: number): void {
    for (;;) {
      this.#takeTurns();
      const newsMs = this.#unsent[0]?.dueMs ?? Infinity;
      const patienceMs = Math.min(...this.#waiting.values()) + TURN_WAIT_MS;
      const nextMs = Math.min(this.#wire.nextMs, newsMs, patienceMs);
      if (nextMs > nowMs) break;
      this.#nowMs = Math.max(this.#nowMs, nextMs);
      for (const { to, message } of this.#wire.take(nextMs)) this.#pops[to]!.receive(message, nextMs);
      if (newsMs <= nextMs) {
        const { pop } = this.#unsent.shift()!;
        this.#wire.send(pop.pop, pop.message(nextMs, false), nextMs);
      }
      for (const [pop, sinceMs] of this.#waiting) if (sinceMs + TURN_WAIT_MS <= nextMs) this.#giveUp(pop);
    }
    this.#nowMs = Math.max(this.#nowMs, nowMs);
  }

  #takeTurns(): void {
    for (const pop of this.#waiting.keys()) {
      if (!pop.isFirst(this.#nowMs)) continue;
      this.#waiting.delete(pop);
      pop.plan(this.#nowMs, true);
      this.#unsent.push({ pop, dueMs: this.#nowMs + GATHER_MS });
    }
  }

  /** Lets a PoP without a turn learn, and change nothing. */
  #giveUp(pop: PlannedPop): void {
    this.#waiting.delete(pop);
    pop.plan(this.#nowMs, false);
  }

  /** For an oracle: everyone knows everything at once. */
  #planAll(nowMs: number): void {
    for (let round = 0; round < ORACLE_ROUNDS; round++) {
      for (const pop of this.#pops) {
        for (const other of this.#pops) if (other !== pop) pop.receive(other.message(nowMs, true), nowMs);
        pop.plan(nowMs, true, true);
      }
    }
  }
}

/** Returns the PoPs that each cooperates with, as deployed ones find them once all have measured all. */
function neighboursIn({ world }: Caches, max: number): number[][] {
  const nearest = world.pops.map((_, pop) => {
    const others = world.pops.flatMap((_other, q) =>
      q === pop ? [] : [{ name: String(q), meanMs: world.peerLatency(pop, q).meanMs }],
    );
    return new Set(nearestPeers(others, max).map(Number));
  });
  return nearest.map((own, pop) => [...nearest.keys()].filter((q) => own.has(q) || nearest[q]!.has(pop)));
}
