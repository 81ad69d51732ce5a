/**
 * The policies of PoPs by name, with checked settings. A new one gets its name in `names.ts` and an entry here, or one
 * in `compared.ts` where no PoP shall have it.
 */
import { SolverError } from "../errors.ts";
import type { Policy, PolicyCache } from "../policy/policy.ts";
import type { SnapshotReader } from "../policy/snapshot.ts";
import { adaptive } from "./adaptive/index.ts";
import { definePolicy, numeric, plain, withChunks, type PolicyDefinition } from "./define-policy.ts";
import { exact } from "./exact.ts";
import { lfu } from "./lfu.ts";
import { lru } from "./lru.ts";
import { POLICY_NAMES, type PolicyName } from "./names.ts";
import { agar } from "./papers/agar.ts";
import { c2p } from "./papers/c2p.ts";
import { online } from "./papers/online.ts";
import { sprout } from "./papers/sprout/index.ts";

const ALPHA = numeric(0.8, 1e-9, 1, "above 0 and at most 1");
/** A policy that smooths the popularity of each period by `alpha`. */
function withAlpha(
  name: string,
  create: (cache: PolicyCache, alpha: number, state?: SnapshotReader) => Policy,
): PolicyDefinition {
  return definePolicy({
    name,
    settings: { alpha: ALPHA },
    create: (cache, { alpha }, state) => create(cache, alpha, state),
  });
}

const POLICIES: Readonly<Record<PolicyName, PolicyDefinition>> = {
  lru: withChunks("lru", lru),
  lfu: withChunks("lfu", lfu),
  agar: definePolicy({
    name: "agar",
    settings: {
      alpha: ALPHA,
      earlyStop: { default: false, allows: (flag) => typeof flag === "boolean", is: "true or false" },
    },
    create: agar,
  }),
  exact: withAlpha("exact", exact),
  online: definePolicy({
    name: "online",
    settings: {
      decay: numeric(0.9, 0, 1, "from 0 to 1"),
      everySeconds: numeric(60, 1e-3, Infinity, "above 0"),
    },
    create: online,
  }),
  sprout: withAlpha("sprout", sprout),
  adaptive: plain("adaptive", adaptive),
  c2p: definePolicy({
    name: "c2p",
    settings: { affinitySeconds: numeric(30, 0, 1e9, "from 0 to 1e9") },
    create: c2p,
  }),
};

/**
 * Creates a policy for `cache`, as new or in the state of `snapshot`. The cache keeps what it holds until the policy
 * decides otherwise. Throws SCENARIO_INVALID for an unknown name, an unknown setting or a value out of range. Throws
 * SNAPSHOT_INVALID for a malformed snapshot, one of another policy, or one of another number of objects.
 */
export function createPolicy(
  name: string,
  cache: PolicyCache,
  given: Readonly<Record<string, unknown>> = {},
  snapshot?: Uint8Array,
  further: readonly PolicyDefinition[] = [],
): Policy {
  return policyNamed(name, further).create(cache, given, snapshot);
}

/** Returns the policy of a name. Throws SCENARIO_INVALID for an unknown one. */
export function policyNamed(name: string, further: readonly PolicyDefinition[] = []): PolicyDefinition {
  const policy = [...Object.values(POLICIES), ...further].find((one) => one.name === name);
  if (policy) return policy;
  const names = [...POLICY_NAMES, ...further.map((one) => one.name)].join(", ");
  const message = `no policy has the name ${name}: choose one of ${names}`;
  throw new SolverError("SCENARIO_INVALID", message, { name });
}
