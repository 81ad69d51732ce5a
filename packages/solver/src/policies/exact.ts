/** Agar's popularity and options, but the configuration of each period solved exactly: the "optimal" of Liu et al. */

import { configureExactly } from "../policy/configure.ts";
import { PeriodPopularity } from "../policy/period-popularity.ts";
import { applyConfiguration } from "../policy/policy.ts";
import type { Policy, PolicyCache } from "../policy/policy.ts";
import { packSnapshot } from "../policy/snapshot.ts";
import type { SnapshotReader } from "../policy/snapshot.ts";

export function exact(cache: PolicyCache, alpha: number, state?: SnapshotReader): Policy {
  const popularity = new PeriodPopularity(cache.objects, alpha, state);
  return {
    onRequest: (object) => popularity.record(object),
    onPeriod: () => applyConfiguration(cache, configureExactly(cache, popularity.endPeriod()).count),
    forget: (object) => popularity.forget(object),
    snapshot: () => packSnapshot("exact", cache.objects, popularity.lists()),
  };
}
