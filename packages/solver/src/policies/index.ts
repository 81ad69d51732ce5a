/** The cache policies by name. */
export type { Policy, PolicyCache, StorageView } from "../policy/policy.ts";
export { replay } from "../policy/replay.ts";
export { POLICY_NAMES } from "./names.ts";
export { createPolicy } from "./registry.ts";
