/**
 * How far regions are, as this PoP believes: estimates, and the latencies that reads and plans derive from them. Pure.
 */
import type { Manifest } from "@agarose/core/format";
import { LATENCY_UNKNOWN, type LatencyEstimate } from "@agarose/core/sources";
import { deliveryMs, DOWN_MS, type RegionEstimate } from "@agarose/solver/planner";

/** A chunk from this PoP's own cache. */
export const EDGE_LATENCY: LatencyEstimate = { meanMs: 5, sdMs: 10 };
/** Returns the estimate of region `name`, or the default for a region that was never measured. */
export function estimateOf(name: string, estimates: readonly RegionEstimate[]): RegionEstimate {
  return estimates.find((estimate) => estimate.name === name) ?? { name, ...LATENCY_UNKNOWN, down: false };
}

/**
 * Returns the latency by which a read ranks a region that delivers `bytes` bytes. A region that is down, or whose
 * circuit breaker is open (`isOpen`), ranks last.
 */
export function latencyOf(
  estimates: readonly RegionEstimate[],
  region: string,
  isOpen = false,
  bytes = 0,
): LatencyEstimate {
  const estimate = estimateOf(region, estimates);
  const meanMs = Math.max(1, deliveryMs(estimate, bytes));
  return { meanMs: estimate.down || isOpen ? Math.max(DOWN_MS, meanMs) : meanMs, sdMs: estimate.sdMs };
}

/** Returns the bytes of one chunk in a stripe of the usual size. */
export function shardBytes({ bytes, stripeBytes, k }: Pick<Manifest, "bytes" | "stripeBytes" | "k">): number {
  return Math.ceil(Math.min(bytes, stripeBytes) / k);
}
