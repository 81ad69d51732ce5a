/**
 * Agar's popularity and options, with the configuration of each period solved exactly: the "optimal" of Liu et al.
 * (section VI).
 */
import { configureExactly } from "../policy/configure.ts";
import { PeriodPopularity } from "../policy/period-popularity.ts";
import { applyConfiguration, type Policy, type PolicyCache } from "../policy/policy.ts";
import { packSnapshot, type SnapshotReader } from "../policy/snapshot.ts";

/** Creates the policy for `cache`, as new or from a snapshot. `alpha`: weight of the newest period. */
export function exact(cache: PolicyCache, alpha: number, state?: SnapshotReader): Policy {
  const popularity = new PeriodPopularity(cache.objects, alpha, state);
  return {
    onRequest: (object) => popularity.record(object),
    onPeriod: () => applyConfiguration(cache, configureExactly(cache, popularity.endPeriod()).count),
    forget: (object) => popularity.forget(object),
    snapshot: () => packSnapshot("exact", cache.objects, popularity.lists()),
  };
}
