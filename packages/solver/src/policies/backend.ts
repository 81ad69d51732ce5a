/** The baseline without a cache: every read goes to the regions. */
import type { Policy } from "../policy/policy.ts";

/** Creates the policy. */
export function backend(): Policy {
  return { onRequest: () => undefined };
}
