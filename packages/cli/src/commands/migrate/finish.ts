/** Whether the regions that a migration leaves out may go. */
import { AgaroseError, CHUNK_PREFIX } from "@agarose/core";
import type { CommandContext } from "../../lib/context.ts";
import { checkManifests } from "../../lib/objects/verify-object.ts";
import { formatCount } from "../../lib/output.ts";
import { keyGroups, type KeyGroup } from "../../lib/walk/key-groups.ts";
import { mapOrdered } from "../../lib/walk/ordered-pool.ts";

const OBJECTS_AT_A_TIME = 16;
const SHOWN_MAX = 100;

/**
 * Resolves when the regions `left` hold no chunk, and every other region has the newest manifest or tombstone of every
 * key. Throws USAGE when that is not so, and what listing a region throws: only there may something be.
 */
export async function checkFinished(left: readonly string[], context: CommandContext): Promise<void> {
  const { stores, signal } = context;
  for (const store of stores.filter(({ region }) => left.includes(region.name))) {
    for await (const { name } of store.list(CHUNK_PREFIX, signal)) {
      throw new AgaroseError(
        "USAGE",
        `region ${store.region.name} still has chunks, such as ${name}: end --move, then remove what no manifest ` +
          "names with `agarose gc --delete`; versions that `keep` keeps stay for their time",
        { region: store.region.name, name },
      );
    }
  }
  const groups = keyGroups(stores, "", signal, { kinds: ["manifests"] });
  const unfinished = async ({ key }: KeyGroup): Promise<string[]> => {
    const { verdicts, newest } = await checkManifests(key, context);
    const isBehind = verdicts.some(({ region, state }) => state !== "sound" && !left.includes(region));
    const names = newest && "placement" in newest ? [...newest.placement, ...(newest.leaves ?? [])] : [];
    return isBehind || names.some((name) => left.includes(name)) ? [key] : [];
  };
  const keys: string[] = [];
  for await (const some of mapOrdered(groups, OBJECTS_AT_A_TIME, unfinished)) keys.push(...some);
  if (keys.length === 0) return;
  throw new AgaroseError(
    "USAGE",
    `${formatCount(keys.length, "object")} did not arrive in every region, such as ${JSON.stringify(keys[0])}: run --move again`,
    { keys: keys.slice(0, SHOWN_MAX) },
  );
}
