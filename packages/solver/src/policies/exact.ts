/** Agar's popularity and options, but the configuration of each period solved exactly: the "optimal" of Liu et al. */

import { configureExactly } from "./configure.ts";
import { PeriodPopularity } from "./period-popularity.ts";
import { applyConfiguration } from "./policy.ts";
import type { Policy, PolicyCache } from "./policy.ts";

export function exact(cache: PolicyCache, alpha: number): Policy {
  const popularity = new PeriodPopularity(cache.objects, alpha);
  return {
    onRequest: (object) => popularity.record(object),
    onPeriod: () => applyConfiguration(cache, configureExactly(cache, popularity.endPeriod()).count),
  };
}
