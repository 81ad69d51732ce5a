import { defineCommand, flag, option, positional } from "../../command.ts";
import { CURSOR, DRY_RUN, JSON_LINES, YES, jobs } from "../../ui/args.ts";
import { parseRate } from "@agarose/storage/maintenance/amounts";

/** Its arguments and options. */
export const args = {
  next: positional("<next>", "the configuration to come, in the folder of the current one"),
  dryRun: {
    ...DRY_RUN,
    description: "print the bytes, requests and dollars that it costs; with --finish, the regions to drop",
  },
  rate: option("<rate>", "with --dry-run: print the hours that it takes at this rate, such as 50MB/s", {
    parse: parseRate,
  }),
  move: flag("the second step: store objects where the next configuration wants them"),
  finish: flag("the third step: drop the empty regions"),
  yes: YES,
  jobs: jobs("2, or 16 with --dry-run"),
  cursor: CURSOR,
  jsonLines: JSON_LINES,
};

/** `agarose migrate`. */
export const command = defineCommand({
  name: "migrate",
  category: "Deployment",
  description:
    "add, replace, rename or remove regions and providers, or change the code, in three steps that no reader notices",
  summary: "change regions, providers or the code in three steps",
  examples: [
    ["migrate next.json --dry-run", "print the cost"],
    ["migrate next.json", "take the first step"],
    ["migrate next.json --move", "take the second"],
    ["migrate next.json --finish", "take the third"],
  ],
  args,
  failsWhen: "an object could not be moved",
  run: async (values) => (await import("./migrate.ts")).migrate(values),
});
