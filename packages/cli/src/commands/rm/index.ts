import { defineCommand, flag, positional } from "../../command.ts";
import { DRY_RUN, JSON_LINES, NO_PURGE, YES, jobs } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  keys: positional("[key...]", "keys of the objects"),
  undelete: flag("restore deleted objects while `keep` still has them"),
  recursive: flag("use each key as a prefix, and delete every object below it", { short: "r" }),
  purge: NO_PURGE,
  all: flag("delete every object of the deployment; give no key"),
  jobs: jobs("4"),
  dryRun: DRY_RUN,
  yes: YES,
  jsonLines: JSON_LINES,
};

/** `agarose rm`. */
export const command = defineCommand({
  name: "rm",
  category: "Objects",
  description: "delete objects; `gc` deletes the chunks of their older versions",
  examples: [
    ["rm photos/cat.jpg", "delete one object"],
    ["rm -r photos/2019/ --dry-run", "list the objects that would be deleted"],
    ["rm photos/cat.jpg --undelete", "restore it, if `keep` still has it"],
  ],
  args,
  failsWhen: "a key has no object, or something could not be removed",
  run: async (values) => (await import("./rm.ts")).rm(values),
});
