/** Which buckets a client may ask. */
import type { PlanRegion } from "@agarose/core/format";
import { LATENCY_UNKNOWN } from "@agarose/core/sources";
import type { Endpoint } from "../../common/config.ts";

/**
 * The configured regions, with what a plan says of each. Without configured regions, those of the plan. A plan cannot
 * add a host to a configuration that names regions.
 */
export function allowedRegions(planned: readonly PlanRegion[], configured: readonly Endpoint[]): readonly PlanRegion[] {
  if (configured.length === 0) return planned;
  return configured.map((own) => ({ ...LATENCY_UNKNOWN, ...planned.find(({ name }) => name === own.name), ...own }));
}
