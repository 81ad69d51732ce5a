import { defineCommand, flag, option, positional, repeatable } from "../../command.ts";
import { parseDuration } from "@agarose/storage/maintenance/amounts";
import { CONSISTENCY, DRY_RUN, FOLLOW, HEADER, JOBS, JSON_LINES, NO_PURGE, YES } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  source: positional("<source>", "a folder; with --get, a prefix"),
  target: positional("<target>", "a prefix, / for all keys; with --get, a folder"),
  get: flag("download from the prefix to the folder"),
  delete: flag("at the end, if nothing failed, also delete everything that the source does not have"),
  deleteAfter: option(
    "<duration>",
    "delete only files that syncs with this option have not found for this long, such as 7d",
    {
      parse: parseDuration(),
    },
  ),
  exclude: repeatable("<glob>", "skip these names on both sides, repeatable"),
  include: repeatable("<glob>", "exceptions to --exclude; without it, only these names; repeatable"),
  dryRun: DRY_RUN,
  yes: YES,
  checksum: flag("compare content even if times or --cache show no change"),
  cache: option("<file>", "remember equal files in this file, so that the next run skips them"),
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
  description: "upload the changes of a folder to a prefix, or download them with --get",
  summary: "upload the changes of a folder, or download them with --get",
  examples: [
    ["sync site web/ --dry-run", "list the files that would be stored"],
    ["sync site web/ --delete", "also remove objects that the folder does not have"],
    ["sync site web/ --delete-after 7d", "keep the files of earlier builds for a week"],
    ["sync --get web/ site", "download the changes into the folder"],
  ],
  args,
  failsWhen: "a file failed, removals were withheld, or a PoP was not purged",
  run: async (values) => (await import("./sync.ts")).sync(values),
});
