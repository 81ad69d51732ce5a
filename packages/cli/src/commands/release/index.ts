import { defineCommand, option } from "../../command.ts";
import { CURSOR, DRY_RUN, JSON_LINES, PREFIX, SHARD, jobs } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  prefix: PREFIX,
  bucket: option("<name>", "a different bucket at the endpoint of `origin`"),
  dryRun: DRY_RUN,
  jobs: jobs("4, or 16 with --dry-run"),
  shard: SHARD,
  cursor: CURSOR,
  jsonLines: JSON_LINES,
};

/** `agarose release`. */
export const command = defineCommand({
  name: "release",
  category: "Deployment",
  description:
    "write the objects as plain objects, with type, headers and metadata, into the bucket that `origin` in the " +
    "configuration names. Objects that are equal there are skipped, and newer ones stay as they are",
  summary: "write the objects into a plain bucket",
  examples: [
    ["release --dry-run", "list the objects that the bucket lacks"],
    ["release photos/ --cursor release.cursor", "write the objects below a prefix, and continue after an interruption"],
    ["release --bucket new-bucket", "write all objects into another bucket"],
  ],
  args,
  failsWhen: "an object could not be written",
  run: async (values) => (await import("./release.ts")).release(values),
});
