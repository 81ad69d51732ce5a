/** The faults of a local PoP's KV. */

/**
 * `down`: every operation fails. `slow`: every operation takes three seconds longer. `stale`: reads return the values
 * from before the fault.
 */
export type KvFault = "ok" | "down" | "slow" | "stale";

/** Returns whether `value` names a fault. */
export function isKvFault(value: unknown): value is KvFault {
  return value === "ok" || value === "down" || value === "slow" || value === "stale";
}
