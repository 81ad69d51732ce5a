import { defineCommand, option, repeatable } from "../../command.ts";
import { CURSOR, DRY_RUN, JSON_LINES, LOG_FORMAT, PREFIX, SHARD, jobs } from "../../ui/args.ts";
import { parseRate, parseShare } from "@agarose/storage/maintenance/amounts";
import { parseCode } from "../../ui/units.ts";

/** Its arguments and options. */
export const args = {
  prefix: PREFIX,
  code: option("<code>", "use this code instead of the configured one, such as 9+3, or auto", { parse: parseCode }),
  hottest: option("<share>", "use --code only for this share of the objects in --log, such as 5%", {
    parse: parseShare,
  }),
  log: repeatable(
    "<file>",
    "an access log, or - for stdin: all other objects get the code of the configuration; repeatable",
  ),
  format: LOG_FORMAT,
  logPrefix: option("<text>", "prefix of every key in the log, such as ec/"),
  dryRun: { ...DRY_RUN, description: "print the bytes, requests and dollars that it costs, and store nothing" },
  rate: option("<rate>", "with --dry-run: print the hours that it takes at this rate, such as 50MB/s", {
    parse: parseRate,
  }),
  jobs: jobs("2, or 16 with --dry-run"),
  shard: SHARD,
  cursor: CURSOR,
  jsonLines: JSON_LINES,
};

/** `agarose recode`. */
export const command = defineCommand({
  name: "recode",
  category: "Deployment",
  description: "rewrite objects to match the current code and placement",
  summary: "rewrite objects to match the current code and placement",
  examples: [
    ["recode --dry-run", "print the cost"],
    ["recode photos/ --code 9+3", "give the objects below a prefix a different code"],
    ["recode --hottest 5% --log access.log --code 6+6", "give the most read objects their own code"],
  ],
  args,
  failsWhen: "an object could not be stored again",
  run: async (values) => (await import("./recode.ts")).recode(values),
});
