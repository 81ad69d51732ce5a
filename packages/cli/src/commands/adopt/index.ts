import { defineCommand, flag, option } from "../../command.ts";
import { CURSOR, DRY_RUN, JSON_LINES, PREFIX, SHARD, jobs } from "../../ui/args.ts";
import { parseRate } from "@agarose/storage/maintenance/amounts";

/** Its arguments and options. */
export const args = {
  prefix: PREFIX,
  status: flag("print how much of the bucket is stored in the regions, and store nothing"),
  dryRun: DRY_RUN,
  rate: option("<rate>", "read the bucket at this rate on average, such as 50MB/s", { parse: parseRate }),
  jobs: jobs("4, or 16 with --dry-run"),
  shard: SHARD,
  cursor: CURSOR,
  jsonLines: JSON_LINES,
};

/** `agarose adopt`. */
export const command = defineCommand({
  name: "adopt",
  category: "Deployment",
  description:
    "store the plain objects of the bucket that `origin` in the configuration names. A key that was put or removed in " +
    "the regions stays as it is",
  summary: "store the objects of a bucket that you have",
  examples: [
    ["adopt --status", "print how much is left"],
    [
      "adopt photos/ --rate 50MB/s --cursor adopt.cursor",
      "copy the objects below a prefix, and continue after an interruption",
    ],
  ],
  args,
  failsWhen: "an object could not be stored",
  run: async (values) => (await import("./adopt.ts")).adopt(values),
});
