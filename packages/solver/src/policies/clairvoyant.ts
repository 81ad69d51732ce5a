/** The oracle: knows the true popularity at every moment and solves exactly whenever it or a latency changes. */

import { configureExactly } from "../policy/configure.ts";
import { applyConfiguration } from "../policy/policy.ts";
import type { Policy, PolicyCache } from "../policy/policy.ts";
import { packSnapshot } from "../policy/snapshot.ts";
import type { SnapshotReader } from "../policy/snapshot.ts";

export function clairvoyant(cache: PolicyCache, state?: SnapshotReader): Policy {
  /** Empty until it is told. */
  let truth = state?.float64() ?? new Float64Array();
  const solve = (): void => {
    if (truth.length > 0) applyConfiguration(cache, configureExactly(cache, truth).count);
  };
  return {
    onRequest: () => undefined,
    onLatency: solve,
    onTruth: (probability) => {
      truth = probability;
      solve();
    },
    snapshot: () => packSnapshot("clairvoyant", cache.objects, [truth]),
  };
}
