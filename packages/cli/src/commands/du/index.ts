import { defineCommand, flag } from "../../command.ts";
import { JSON_LINES, PREFIX, SHARD } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  prefix: PREFIX,
  cost: flag("also dollars a month, by storageUsdPerGbMonth of each region in the configuration"),
  shard: SHARD,
  jsonLines: JSON_LINES,
};

/** `agarose du`. */
export const command = defineCommand({
  name: "du",
  category: "Objects",
  description: "show the size of the objects below a prefix in each region: current, kept versions, and garbage",
  summary: "show the size of objects in each region",
  examples: [
    ["du", "show the size of everything"],
    ["du films/ --cost", "show the size and the price of one folder"],
  ],
  args,
  failsWhen: "a region or a manifest could not be read",
  run: async (values) => (await import("./du.ts")).du(values),
});
