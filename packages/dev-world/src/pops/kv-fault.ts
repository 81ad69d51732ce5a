/** How the fake KV of the local world fails. */

/** `stale`: reads show what was stored when the fault began; `slow`: every operation takes three seconds longer. */
export type KvFault = "ok" | "down" | "slow" | "stale";

export function isKvFault(value: unknown): value is KvFault {
  return value === "ok" || value === "down" || value === "slow" || value === "stale";
}
