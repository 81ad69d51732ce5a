/** The definition of `agarose rm`. */
import { defineCommand, flag, positional } from "../../command.ts";
import { DRY_RUN, JSON_LINES, NO_PURGE, YES, jobs } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  keys: positional("[key...]", "keys of the objects"),
  undelete: flag("restore removed objects, as long as `keep` keeps them"),
  recursive: flag("take each key as a prefix and remove every object whose key begins with it", { short: "r" }),
  purge: NO_PURGE,
  all: flag("remove every object of the deployment; takes no key"),
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
    ["rm photos/cat.jpg", "remove one object"],
    ["rm -r photos/2019/ --dry-run", "list what would be removed below a prefix"],
    ["rm photos/cat.jpg --undelete", "restore it, if `keep` keeps it"],
  ],
  args,
  failsWhen: "a key has no object, or something could not be removed",
  run: async (values) => (await import("./rm.ts")).rm(values),
});
