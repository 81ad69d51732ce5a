import { defineCommand } from "../../command.ts";
import { CONSISTENCY, KEY } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = { key: KEY, consistency: CONSISTENCY };

/** `agarose stat`. */
export const command = defineCommand({
  name: "stat",
  category: "Objects",
  description: "show length, type, headers, version, code and regions of an object",
  examples: [["stat photos/cat.jpg", "show one object"]],
  args,
  failsWhen: "there is no such object, or too few regions answer",
  run: async (values) => (await import("./stat.ts")).stat(values),
});
