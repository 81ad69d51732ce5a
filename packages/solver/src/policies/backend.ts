/** No cache at all: every read goes to the regions. */

import type { Policy } from "../policy/policy.ts";

export function backend(): Policy {
  return { onRequest: () => undefined };
}
