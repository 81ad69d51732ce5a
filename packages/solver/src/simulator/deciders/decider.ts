/** Decides what all caches of a system keep: one policy per PoP, or PoPs in turn. */
import type { Policy } from "../../policy/policy.ts";
import { COMPARED } from "../../policies/compared.ts";
import { createPolicy } from "../../policies/registry.ts";
import type { Random } from "../../random.ts";
import { SinglePopCache, type Caches } from "../cache-state.ts";
import type { SystemSpec } from "../scenario/scenario.ts";

/** Changes the caches of a system, when the simulator calls it. */
export interface Decider {
  /** Whether it receives the true popularity; then also every change of latency at once. */
  readonly wantsTruth: boolean;
  /** Messages sent to peers so far, by sending PoP; missing where PoPs exchange none. */
  readonly messages?: Float64Array | undefined;
  onRequest(pop: number, object: number, seconds: number): void;
  onPeriod(seconds: number): void;
  /** Called between two periods; missing where caches change at every request. */
  onExchange?(seconds: number): void;
  onLatency?(seconds: number): void;
  onTruth?(probability: Float64Array, seconds: number): void;
}

/**
 * Lets caches change at exchanges and at the end of periods only, as in deployed PoPs, which count requests and then
 * replay them to the policy in a random order.
 */
export class PeriodicDecider implements Decider {
  readonly #decider: Decider;
  readonly #caches: Caches;
  readonly #random: Random;
  /** Objects by PoP: one for each request since the last exchange. */
  readonly #asked: readonly number[][];
  #beganSeconds = 0;

  constructor(decider: Decider, caches: Caches, random: Random) {
    this.#decider = decider;
    this.#caches = caches;
    this.#random = random;
    this.#asked = caches.world.pops.map(() => []);
  }

  get wantsTruth(): boolean {
    return this.#decider.wantsTruth;
  }

  get messages(): Float64Array | undefined {
    return this.#decider.messages;
  }

  onRequest(pop: number, object: number): void {
    this.#asked[pop]!.push(object);
  }

  onPeriod(seconds: number): void {
    this.onExchange(seconds);
    this.#decider.onPeriod(seconds);
    for (const pop of this.#asked.keys()) this.#caches.write(pop);
  }

  onExchange(seconds: number): void {
    const decider = this.#decider;
    for (const [pop, asked] of this.#asked.entries()) {
      const gap = (seconds - this.#beganSeconds) / asked.length;
      for (const [i, object] of this.#random.shuffle(asked).entries()) {
        decider.onRequest(pop, object, this.#beganSeconds + i * gap);
      }
      asked.length = 0;
    }
    this.#beganSeconds = seconds;
  }

  onLatency(seconds: number): void {
    this.#decider.onLatency?.(seconds);
  }

  onTruth(probability: Float64Array, seconds: number): void {
    this.#decider.onTruth?.(probability, seconds);
  }
}

/** Gives every PoP its own policy. */
export class SeparateDecider implements Decider {
  readonly #caches: SinglePopCache[];
  readonly #policies: Policy[];

  constructor(caches: Caches, system: SystemSpec) {
    this.#caches = caches.world.pops.map((_, pop) => new SinglePopCache(caches, pop));
    this.#policies = this.#caches.map((cache) =>
      createPolicy(system.policy, cache, system.settings, undefined, COMPARED),
    );
  }

  get wantsTruth(): boolean {
    return this.#policies[0]!.onTruth !== undefined;
  }

  onRequest(pop: number, object: number, seconds: number): void {
    this.#policies[pop]!.onRequest(object, seconds);
  }

  onPeriod(seconds: number): void {
    for (const policy of this.#policies) policy.onPeriod?.(seconds);
  }

  onLatency(seconds: number): void {
    for (const cache of this.#caches) cache.measure();
    for (const policy of this.#policies) policy.onLatency?.(seconds);
  }

  onTruth(probability: Float64Array, seconds: number): void {
    for (const policy of this.#policies) policy.onTruth?.(probability, seconds);
  }
}
