/** Where a walk is cut into ranges, and what is known to be damaged before it begins. */
import type { Config } from "@agarose/storage/config/config";
import { cutKeys } from "@agarose/storage/listing/key-ranges";
import { keyGroups } from "@agarose/storage/listing/key-groups";
import { keysBehind } from "@agarose/storage/pops/pop-client";
import type { Settings } from "./options.ts";
import { contextOf } from "./part.ts";

/** Ranges for each child that walks at a time: some have more objects than others. */
const RANGES_PER_CHILD = 16;
/** A Durable Object lists them with each look at its children. */
const RANGES_MAX = 1_024;
/** Parts of a range that is not worth another cut. */
const PARTS_MIN = 4;
/** Entries of the repair queue that are looked at. The others are found by the walk. */
const URGENT_MAX = 10_000;

/** @throws as `cutKeys` does. */
export async function cutWalk(config: Config, { prefix = "", concurrency, objectsPerPart }: Settings) {
  const { context } = contextOf(config);
  const onWarning = (line: string): void => console.warn(line);
  const cuts = await cutKeys(
    prefix,
    {
      ranges: Math.min(RANGES_MAX, RANGES_PER_CHILD * concurrency),
      objectsMin: PARTS_MIN * objectsPerPart,
      onWarning,
    },
    context,
  );
  const urgent: string[] = [];
  const queued = keyGroups(context.stores, prefix, context.signal, { kinds: ["repairs"], onFailure: () => {} });
  for await (const { key } of queued) if (urgent.push(key) >= URGENT_MAX) break;
  return { cuts, urgent, behind: await keysBehind(config.pops) };
}
