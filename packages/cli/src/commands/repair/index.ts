import { defineCommand, flag } from "../../command.ts";
import { CURSOR, DRY_RUN, INVENTORY, JSON_LINES, KEYS, KEY_PREFIX, SHARD, jobs } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  keys: KEYS,
  prefix: KEY_PREFIX,
  queued: flag("only the objects that puts, removals and PoPs have reported"),
  quick: flag("find damage by listings, without reading chunks of healthy objects"),
  dryRun: DRY_RUN,
  jobs: jobs("1, or 8 with --quick"),
  shard: SHARD,
  inventory: INVENTORY,
  cursor: CURSOR,
  jsonLines: JSON_LINES,
};

/** `agarose repair`. */
export const command = defineCommand({
  name: "repair",
  category: "Safety",
  description:
    "rebuild missing or damaged chunks, beginning with the repair queue; reads at most k + 2 chunks of an object",
  summary: "rebuild missing or damaged chunks and manifests",
  examples: [
    ["repair", "check everything, and repair the damage"],
    ["repair --queued", "repair only the objects that puts and PoPs have reported"],
    ["repair --quick --dry-run", "list the damage that listings show"],
  ],
  args,
  failsWhen: "something stays damaged",
  run: async (values) => (await import("./repair.ts")).repair(values),
});
