/** Requests that were only counted, told to a policy one by one. */

import { solverError } from "../errors.ts";
import type { Random } from "../random.ts";
import type { Policy } from "./policy.ts";

/**
 * Tells the policy of the requests of a past period: `counts[i]` requests for object i, in random order, which is how
 * independent readers ask, and evenly spaced from `seconds.from` to before `seconds.to`. The same `random` gives the same
 * order. Returns how many requests that were. Throws SCENARIO_INVALID for a count that is no integer from 0 on.
 */
export function replay(
  policy: Pick<Policy, "onRequest">,
  counts: ArrayLike<number>,
  seconds: { readonly from: number; readonly to: number },
  random: Random,
): number {
  let total = 0;
  for (let object = 0; object < counts.length; object++) {
    const count = counts[object]!;
    if (!Number.isSafeInteger(count) || count < 0) {
      throw solverError("SCENARIO_INVALID", `object ${object} was asked for ${count} times: not an integer from 0 on`, {
        object,
        count,
      });
    }
    total += count;
  }
  const asked = new Uint32Array(total);
  let at = 0;
  for (let object = 0; object < counts.length; object++) asked.fill(object, at, (at += counts[object]!));
  const gap = (seconds.to - seconds.from) / total;
  for (let i = 0; i < total; i++) {
    // Fisher & Yates, one step before each request.
    const j = i + random.integer(total - i);
    const object = asked[j]!;
    asked[j] = asked[i]!;
    policy.onRequest(object, seconds.from + i * gap);
  }
  return total;
}
