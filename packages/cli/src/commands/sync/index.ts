/** The definition of `agarose sync`. */
import { defineCommand, flag, option, positional, repeatable } from "../../command.ts";
import { CONSISTENCY, DRY_RUN, FOLLOW, HEADER, JOBS, JSON_LINES, NO_PURGE, YES } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  source: positional("<source>", "a folder; with --get, a prefix"),
  target: positional("<target>", "a prefix, / for all keys; with --get, a folder"),
  get: flag("from the objects to the folder"),
  delete: flag("remove what the source does not have, last, and only if nothing failed"),
  exclude: repeatable("<glob>", "leave out these names at both sides, repeatable"),
  include: repeatable("<glob>", "exceptions to --exclude; alone, only these names; repeatable"),
  dryRun: DRY_RUN,
  yes: YES,
  checksum: flag("compare content also where times or --cache say that nothing has changed"),
  cache: option("<file>", "remember in this file what is equal, so that the next run asks for nothing of it"),
  follow: FOLLOW,
  consistency: CONSISTENCY,
  header: HEADER,
  jobs: JOBS,
  purge: NO_PURGE,
  jsonLines: JSON_LINES,
};

/** `agarose sync`. */
export const command = defineCommand({
  name: "sync",
  category: "Objects",
  description: "make the objects below a prefix equal to the files of a folder; --get: the files to the objects",
  summary: "make the objects below a prefix equal to a folder, or the reverse",
  examples: [
    ["sync site web/ --dry-run", "say what would be stored"],
    ["sync site web/ --delete", "also remove objects that the folder does not have"],
    ["sync --get web/ site", "bring the folder to what is stored"],
  ],
  args,
  failsWhen: "a file failed, removals were withheld, or a PoP was not purged",
  run: async (values) => (await import("./sync.ts")).sync(values),
});
