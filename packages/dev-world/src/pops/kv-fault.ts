/** The faults of a local PoP's KV. */

/**
 * `down`: every operation fails. `slow`: every operation takes three seconds longer. `stale`: reads return the values
 * from before the fault. `cold`: the first read of each value takes 150 ms longer.
 */
export const KV_STATES = ["ok", "down", "slow", "stale", "cold"] as const;

/** How the KV of a PoP behaves. */
export type KvState = (typeof KV_STATES)[number];
