/**
 * The oracle: it knows the true popularity at every moment, and solves exactly whenever popularity or latencies change.
 */
import { configureExactly } from "../policy/configure.ts";
import { applyConfiguration, type Policy, type PolicyCache } from "../policy/policy.ts";
import { packSnapshot, type SnapshotReader } from "../policy/snapshot.ts";

/** Creates the policy for `cache`, as new or from a snapshot. */
export function clairvoyant(cache: PolicyCache, state?: SnapshotReader): Policy {
  /** Empty until the first `onTruth`. */
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
