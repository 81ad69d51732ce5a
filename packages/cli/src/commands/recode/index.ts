/** The definition of `agarose recode`. */
import { defineCommand, option, repeatable } from "../../command.ts";
import { CURSOR, DRY_RUN, JSON_LINES, LOG_FORMAT, PREFIX, jobs } from "../../ui/args.ts";
import { parseRate, parseShare } from "@agarose/storage/maintenance/amounts";
import { parseCode } from "../../ui/units.ts";

/** Its arguments and options. */
export const args = {
  prefix: PREFIX,
  code: option("<code>", "a code in place of that of the configuration, such as 9+3, or auto", { parse: parseCode }),
  hottest: option("<share>", "--code for this share of the objects in --log alone, such as 5%", { parse: parseShare }),
  log: repeatable(
    "<file>",
    "an access log, or - for stdin: all other objects get the code of the configuration; repeatable",
  ),
  format: LOG_FORMAT,
  logPrefix: option("<text>", "what the log has before every key, such as ec/"),
  dryRun: { ...DRY_RUN, description: "print the bytes, requests and dollars that it takes, and store nothing" },
  rate: option("<rate>", "with --dry-run: print the hours that it takes at this, such as 50MB/s", { parse: parseRate }),
  jobs: jobs("2, or 16 with --dry-run"),
  cursor: CURSOR,
  jsonLines: JSON_LINES,
};

/** `agarose recode`. */
export const command = defineCommand({
  name: "recode",
  category: "Deployment",
  description: "store objects again whose code or placement is not what the configuration says now",
  summary: "store objects again under the code of the configuration",
  examples: [
    ["recode --dry-run", "print what it would take"],
    ["recode photos/ --code 9+3", "give the objects below a prefix another code"],
    ["recode --hottest 5% --log access.log --code 6+6", "give what is read most a code of its own"],
  ],
  args,
  failsWhen: "an object could not be stored again",
  run: async (values) => (await import("./recode.ts")).recode(values),
});
