/** Lets the PoPs of the configuration forget keys whose objects were replaced or removed. */
import { toAgaroseError } from "@agarose/core";
import type { Config } from "@agarose/storage/config/config";
import { PopClient } from "@agarose/storage/pops/pop-client";
import { formatCount, logLine } from "../ui/output.ts";

/** The result of one PoP. `purged` is false without a token, and when `problem` says why. */
export interface PopPurge {
  readonly pop: string;
  readonly purged: boolean;
  readonly problem?: string;
}

/** A PoP takes so many in one request. */
const KEYS_MAX = 100;
/** From so many on, the prefix is one request instead. */
const KEYS_BY_NAME_MAX = 1_000;

type Body = Parameters<PopClient["purge"]>[0];

/** Purges `keys`, all of which begin with `prefix` where there is one, from every PoP. Does not reject. */
export function purgePops(
  { pops }: Pick<Config, "pops">,
  keys: readonly string[],
  prefix?: string,
): Promise<PopPurge[]> {
  if (keys.length === 0) return Promise.resolve([]);
  const bodies: readonly Body[] =
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

async function purgePop(pop: Config["pops"][number], bodies: readonly Body[]): Promise<PopPurge> {
  try {
    const client = new PopClient(pop);
    for (const body of bodies) await client.purge(body);
    return { pop: pop.name, purged: true };
  } catch (error) {
    return { pop: pop.name, purged: false, problem: toAgaroseError(error, "SOURCE_FAILED").message };
  }
}
