import { defineCommand, positional } from "../../command.ts";
import { CONSISTENCY } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = { keys: positional("<key...>", "keys of objects"), consistency: CONSISTENCY };

/** `agarose cat`. */
export const command = defineCommand({
  name: "cat",
  category: "Objects",
  description: "print objects to stdout, one after the other",
  examples: [["cat logs/today | grep 404", "search an object"]],
  args,
  failsWhen: "an object could not be read in full",
  async run({ keys, ...options }) {
    const { get } = await import("../get/get.ts");
    for (const key of keys) await get({ ...options, key, file: "-" });
  },
});
