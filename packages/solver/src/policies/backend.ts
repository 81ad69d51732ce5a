/** Keeps nothing: every read goes to the regions. The baseline without a cache. */
import type { Policy } from "../policy/policy.ts";

/** Creates the policy. */
export function backend(): Policy {
  return { onRequest: () => undefined };
}
