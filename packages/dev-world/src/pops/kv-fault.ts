/** The faults of a local PoP's KV. */

/**
 * `down`: every operation fails. `slow`: every operation takes three seconds longer. `stale`: reads return the values
 * from before the fault. `cold`: the first read of each value takes 150 ms longer.
 */
export type KvFault = "ok" | "down" | "slow" | "stale" | "cold";

/** Returns whether `value` names a fault. */
export function isKvFault(value: unknown): value is KvFault {
  return typeof value === "string" && ["ok", "down", "slow", "stale", "cold"].includes(value);
}
