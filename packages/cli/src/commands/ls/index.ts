import { defineCommand, flag, option } from "../../command.ts";
import { CONSISTENCY, JSON_LINES, PREFIX } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  prefix: PREFIX,
  long: flag("also length, type and version, from the manifests", { short: "l" }),
  after: option("<key>", "start after this key, to continue a list"),
  consistency: CONSISTENCY,
  jsonLines: JSON_LINES,
};

/** `agarose ls`. */
export const command = defineCommand({
  name: "ls",
  category: "Objects",
  description: "list the keys that begin with a prefix",
  examples: [
    ["ls", "list all keys"],
    ["ls -l photos/", "list with length, type and version"],
  ],
  args,
  failsWhen: "too few regions could be listed",
  run: async (values) => (await import("./ls.ts")).ls(values),
});
