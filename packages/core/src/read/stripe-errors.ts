/** The errors of a stripe: too few chunks are available, or they do not arrive in time. */
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import type { Manifest } from "../format/manifest/index.ts";

/** One failed request and the code of its error. */
export interface FailedRequest {
  readonly source: string;
  readonly chunk: number;
  readonly code: string;
}

/** How many chunks have arrived, are under way or can be requested; or for how long no source sent anything. */
type Reason = { readonly available: number } | { readonly timeoutMs: number };

/** Returns the error of a stripe that failed: NOT_ENOUGH_CHUNKS or READ_TIMEOUT, by `reason`. */
export function stripeError(
  { key, k }: Pick<Manifest, "key" | "k">,
  stripe: number,
  received: number,
  failures: readonly FailedRequest[],
  reason: Reason,
): AgaroseError {
  const details = { stripe, needed: k, received, failures, ...reason };
  const what = HAS_MESSAGES && `stripe ${stripe} of ${JSON.stringify(key)}`;
  const message =
    HAS_MESSAGES &&
    ("available" in reason
      ? `${what} needs ${k} chunks and can get ${reason.available} (${received} received; ${summary(failures)}): ` +
        "retry once its regions answer again, or configure those that are missing"
      : `${what} got ${received} of ${k} chunks in ${reason.timeoutMs} ms (${summary(failures)}): ` +
        "retry, or allow more time");
  return new AgaroseError("available" in reason ? "NOT_ENOUGH_CHUNKS" : "READ_TIMEOUT", message, details);
}

function summary(failures: readonly FailedRequest[]): string {
  if (failures.length === 0) return "no source failed";
  const counts = new Map<string, number>();
  for (const { source, code } of failures) counts.set(`${source} ${code}`, (counts.get(`${source} ${code}`) ?? 0) + 1);
  return [...counts].map(([what, count]) => (count > 1 ? `${what} x${count}` : what)).join(", ");
}
