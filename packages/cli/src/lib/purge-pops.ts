/**
 * Lets the PoPs of the configuration forget keys whose objects were replaced or removed.
 */
import { toAgaroseError } from "@agarose/core";
import { ADMIN_TOKEN_VARIABLE, adminTokenOf } from "@agarose/storage/pops/admin-token";
import type { Config } from "@agarose/storage/config/config";
import { formatCount, logLine } from "../ui/output.ts";

/** What one PoP did. `purged` is false without a token, and when `problem` says why. */
export interface PopPurge {
  readonly pop: string;
  readonly purged: boolean;
  readonly problem?: string;
}

/** A PoP takes so many in one request. */
const KEYS_MAX = 100;
/** From so many on, the prefix is one request instead. */
const KEYS_BY_NAME_MAX = 1_000;
const TIMEOUT_MS = 60_000;

/** Purges `keys`, all of which begin with `prefix` where there is one, from every PoP. Does not reject. */
export function purgePops(
  { pops }: Pick<Config, "pops">,
  keys: readonly string[],
  prefix?: string,
): Promise<PopPurge[]> {
  if (keys.length === 0) return Promise.resolve([]);
  const bodies =
    prefix !== undefined && keys.length > KEYS_BY_NAME_MAX
      ? [{ prefix }]
      : Array.from({ length: Math.ceil(keys.length / KEYS_MAX) }, (_, page) => ({
          keys: keys.slice(page * KEYS_MAX, (page + 1) * KEYS_MAX),
        }));
  return Promise.all(pops.map((pop) => purgePop(pop, bodies)));
}

/** Says on stderr which PoPs were not purged, and what that means for their readers. */
export function warnOfUnpurged(purges: readonly PopPurge[]): void {
  const left = purges.filter(({ purged }) => !purged);
  const [first] = left;
  if (first === undefined) return;
  const names = left.map(({ pop }) => pop).join(", ");
  const why = left.every(({ problem }) => problem === first.problem)
    ? `${first.problem}`
    : left.map(({ pop, problem }) => `${pop}: ${problem}`).join("; ");
  const meanwhile = "readers there may get the version before for MANIFEST_TTL_SECONDS, a minute by default";
  logLine(`warning: ${formatCount(left.length, "PoP")} (${names}) not purged, so ${meanwhile}: ${why}`);
}

async function purgePop({ name, url }: Config["pops"][number], bodies: readonly object[]): Promise<PopPurge> {
  const token = adminTokenOf(name);
  if (token === undefined) {
    return { pop: name, purged: false, problem: `no admin token: set ${ADMIN_TOKEN_VARIABLE}` };
  }
  try {
    for (const body of bodies) {
      const response = await fetch(`${url}/v1/purge`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const text = await response.text();
      if (!response.ok) return { pop: name, purged: false, problem: `it answered ${response.status}: ${text}` };
    }
    return { pop: name, purged: true };
  } catch (error) {
    return { pop: name, purged: false, problem: toAgaroseError(error, "SOURCE_FAILED").message };
  }
}
