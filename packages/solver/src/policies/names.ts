/**
 * The names of the policies that a PoP may run, apart from the policies: a program that only checks a name then bundles
 * none of them.
 */
export const POLICY_NAMES = ["lru", "lfu", "agar", "exact", "online", "sprout", "adaptive", "c2p"] as const;

/** The name of a policy of `registry.ts`. */
export type PolicyName = (typeof POLICY_NAMES)[number];
