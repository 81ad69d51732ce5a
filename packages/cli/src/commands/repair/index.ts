/** The definition of `agarose repair`. */
import { defineCommand, flag } from "../../command.ts";
import { CURSOR, DRY_RUN, JSON_LINES, KEYS, KEY_PREFIX, jobs } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  keys: KEYS,
  prefix: KEY_PREFIX,
  queued: flag("only what the repair queue and PoPs name: what puts and removals could not finish"),
  quick: flag("find damage by what the regions list, without reading chunks of sound objects"),
  dryRun: DRY_RUN,
  jobs: jobs("1, or 8 with --quick"),
  cursor: CURSOR,
  jsonLines: JSON_LINES,
};

/** `agarose repair`. */
export const command = defineCommand({
  name: "repair",
  category: "Safety",
  description:
    "find and rewrite what is missing or damaged, first of all what the repair queue names; reads at most k + 2 " +
    "chunks of an object",
  summary: "find and rewrite what is missing or damaged",
  examples: [
    ["repair", "check everything, and mend what is damaged"],
    ["repair --queued", "mend only what puts and PoPs have reported"],
    ["repair --quick --dry-run", "say what listings show as damaged"],
  ],
  args,
  failsWhen: "something stays damaged",
  run: async (values) => (await import("./repair.ts")).repair(values),
});
