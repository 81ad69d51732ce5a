import { defineCommand } from "../../command.ts";
import { JSON_LINES, KEY } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = { key: KEY, jsonLines: JSON_LINES };

/** `agarose versions`. */
export const command = defineCommand({
  name: "versions",
  category: "Safety",
  description: "list the versions of an object, kept ones included, and whether their chunks are there",
  summary: "list the versions of an object",
  examples: [["versions photos/cat.jpg", "list the versions, the newest first"]],
  args,
  failsWhen: "a region could not be listed",
  run: async (values) => (await import("./versions.ts")).versions(values),
});
