import { defineCommand, option } from "../../command.ts";
import { DRY_RUN, KEY } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  key: KEY,
  version: option("<version>", "version (32 hex digits) or generation; default: the newest kept version"),
  dryRun: DRY_RUN,
};

/** `agarose restore`. */
export const command = defineCommand({
  name: "restore",
  category: "Safety",
  description: "restore an earlier version as the newest; the version that it replaces is kept, too",
  summary: "restore an earlier version as the newest",
  examples: [
    ["restore photos/cat.jpg --dry-run", "show which version would be restored"],
    ["restore photos/cat.jpg --version 3", "restore generation 3"],
  ],
  args,
  failsWhen: "no such version is kept, or it cannot be read",
  run: async (values) => (await import("./restore.ts")).restore(values),
});
