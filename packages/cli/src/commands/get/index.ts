import { defineCommand, flag, option, positional } from "../../command.ts";
import { CONSISTENCY, DRY_RUN, KEY } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  key: KEY,
  file: positional("[file]", "file or folder to write to, or - for stdout; default is the key's base name"),
  recursive: flag("use the key as a prefix, and download everything below it into the folder FILE", { short: "r" }),
  range: option("<range>", "bytes FIRST-LAST, FIRST- or -COUNT"),
  consistency: CONSISTENCY,
  dryRun: DRY_RUN,
};

/** `agarose get`. */
export const command = defineCommand({
  name: "get",
  category: "Objects",
  description: "read an object into a file, or to stdout (-)",
  examples: [
    ["get photos/cat.jpg", "write cat.jpg into the working directory"],
    ["get photos/cat.jpg backup/", "write backup/cat.jpg"],
    ["get -r photos/ pictures", "download all objects below a prefix into a folder"],
    ["get films/a.mp4 - --range 0-1023", "print the first 1,024 bytes"],
  ],
  args,
  failsWhen: "the object could not be read in full",
  run: async (values) => (await import("./get.ts")).get(values),
});
