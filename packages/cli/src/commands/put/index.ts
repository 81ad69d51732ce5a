import { defineCommand, flag, option, positional } from "../../command.ts";
import { DRY_RUN, FOLLOW, HEADER, JOBS, JSON_LINES, NO_PURGE } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  paths: positional("<path...>", "files or folders, or - for stdin"),
  key: option("<key>", "key of the object, or of the folder; default is the base name"),
  prefix: option("<prefix>", "prepend this to every key"),
  contentType: option("<type>", "default: by the extension of the key"),
  header: HEADER,
  jobs: JOBS,
  force: flag("upload objects that are stored unchanged, too"),
  compress: option<"none" | "small" | "all">("<which>", "like `compress` of the configuration, for this put only", {
    choices: ["none", "small", "all"],
  }),
  follow: FOLLOW,
  purge: NO_PURGE,
  dryRun: { ...DRY_RUN, description: "list which objects would be new, replaced or unchanged, and store nothing" },
  jsonLines: JSON_LINES,
};

/** `agarose put`. */
export const command = defineCommand({
  name: "put",
  category: "Objects",
  description: "store files, folders or stdin (-) as objects",
  examples: [
    ["put cat.jpg --prefix photos/", "store a file as photos/cat.jpg"],
    ["put site", "store a folder, with keys below site/"],
    ["put - --key logs/today", "store stdin"],
  ],
  args,
  failsWhen: "an object could not be stored",
  run: async (values) => (await import("./put.ts")).put(values),
});
