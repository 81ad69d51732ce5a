/** The cache policies by name. */
export type { Policy, PolicyCache, StorageView } from "../policy/policy.ts";
export { replay } from "../policy/replay.ts";
export { createPolicy, POLICY_NAMES } from "./registry.ts";
