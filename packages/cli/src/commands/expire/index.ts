import { defineCommand } from "../../command.ts";
import { CURSOR, DRY_RUN, JSON_LINES, SHARD, YES, jobs } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = { dryRun: DRY_RUN, yes: YES, jobs: jobs("8"), shard: SHARD, cursor: CURSOR, jsonLines: JSON_LINES };

/** `agarose expire`. */
export const command = defineCommand({
  name: "expire",
  category: "Safety",
  description: "remove the objects that are older than `expire` in the configuration allows",
  summary: "remove the objects that are older than the rules allow",
  examples: [
    ["expire --dry-run", "list the objects that would be removed"],
    ["expire --yes", "remove it without a question, as in a cron job"],
  ],
  args,
  failsWhen: "an object could not be removed",
  run: async (values) => (await import("./expire.ts")).expire(values),
});
