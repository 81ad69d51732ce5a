/** Who decides about all caches of a system: one policy per PoP, or all PoPs together. */

import type { Policy } from "../policies/policy.ts";
import { createPolicy } from "../policies/registry.ts";
import { SinglePopCache } from "./cache-state.ts";
import type { Caches } from "./cache-state.ts";
import type { SystemSpec } from "./scenario.ts";

export interface Decider {
  /** Whether it is told the true popularity: then also every change of latency at once. */
  readonly wantsTruth: boolean;
  /** Messages sent to peers so far, by sending PoP; missing where PoPs do not talk. */
  readonly messages?: Float64Array;
  onRequest(pop: number, object: number, seconds: number): void;
  onPeriod(seconds: number): void;
  onLatency(seconds: number): void;
  onTruth(probability: Float64Array, seconds: number): void;
}

/** Every PoP for itself. */
export class SeparateDecider implements Decider {
  private readonly caches: SinglePopCache[];
  private readonly policies: Policy[];

  constructor(caches: Caches, system: SystemSpec) {
    this.caches = caches.world.pops.map((_, pop) => new SinglePopCache(caches, pop));
    this.policies = this.caches.map((cache) => createPolicy(system.policy, cache, system.settings));
  }

  get wantsTruth(): boolean {
    return this.policies[0]!.onTruth !== undefined;
  }

  onRequest(pop: number, object: number, seconds: number): void {
    this.policies[pop]!.onRequest(object, seconds);
  }

  onPeriod(seconds: number): void {
    for (const policy of this.policies) policy.onPeriod?.(seconds);
  }

  onLatency(seconds: number): void {
    for (const cache of this.caches) cache.measure();
    for (const policy of this.policies) policy.onLatency?.(seconds);
  }

  onTruth(probability: Float64Array, seconds: number): void {
    for (const policy of this.policies) policy.onTruth?.(probability, seconds);
  }
}
