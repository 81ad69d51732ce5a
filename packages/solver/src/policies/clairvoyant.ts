/** The oracle: knows the true popularity at every moment and solves exactly whenever it or a latency changes. */

import { configureExactly } from "./configure.ts";
import { applyConfiguration } from "./policy.ts";
import type { Policy, PolicyCache } from "./policy.ts";

export function clairvoyant(cache: PolicyCache): Policy {
  let truth: Float64Array | undefined;
  const solve = (): void => {
    if (truth) applyConfiguration(cache, configureExactly(cache, truth).count);
  };
  return {
    onRequest: () => undefined,
    onLatency: solve,
    onTruth: (probability) => {
      truth = probability;
      solve();
    },
  };
}
