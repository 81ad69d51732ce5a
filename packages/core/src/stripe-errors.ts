/**
 * How a stripe fails: too few of its chunks can be had, or they do not come in time.
 */
import { AgaroseError } from "./errors.ts";
import type { Manifest } from "./manifest.ts";

/** One request that came to nothing, and the code of why. */
export interface FailedRequest {
  readonly source: string;
  readonly chunk: number;
  readonly code: string;
}

/** @param available chunks that are here, on their way, or could still be asked for. */
export function notEnoughChunks(
  { key, k }: Manifest,
  stripe: number,
  available: number,
  received: number,
  failures: readonly FailedRequest[],
): AgaroseError {
  return new AgaroseError(
    "NOT_ENOUGH_CHUNKS",
    `stripe ${stripe} of ${JSON.stringify(key)} needs ${k} chunks and can get ${available} (${received} received; ` +
      `${summary(failures)}): retry once its regions answer again, or configure those that are missing`,
    { stripe, needed: k, available, received, failures },
  );
}

export function readTimeout(
  { key, k }: Manifest,
  stripe: number,
  timeoutMs: number,
  received: number,
  failures: readonly FailedRequest[],
): AgaroseError {
  return new AgaroseError(
    "READ_TIMEOUT",
    `stripe ${stripe} of ${JSON.stringify(key)} got ${received} of ${k} chunks in ${timeoutMs} ms ` +
      `(${summary(failures)}): retry, or allow more time`,
    { stripe, needed: k, received, timeoutMs, failures },
  );
}

function summary(failures: readonly FailedRequest[]): string {
  if (failures.length === 0) return "no source failed";
  const counts = new Map<string, number>();
  for (const { source, code } of failures) counts.set(`${source} ${code}`, (counts.get(`${source} ${code}`) ?? 0) + 1);
  return [...counts].map(([what, count]) => (count > 1 ? `${what} x${count}` : what)).join(", ");
}
