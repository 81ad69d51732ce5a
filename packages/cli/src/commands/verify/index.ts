import { defineCommand, flag } from "../../command.ts";
import { CURSOR, INVENTORY, JSON_LINES, KEYS, KEY_PREFIX, SHARD, jobs } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  keys: KEYS,
  prefix: KEY_PREFIX,
  quick: flag("use listings only, without reading chunks: finds missing chunks and wrong lengths"),
  jobs: jobs("2, or 16 with --quick"),
  shard: SHARD,
  inventory: INVENTORY,
  cursor: CURSOR,
  jsonLines: JSON_LINES,
};

/** `agarose verify`. */
export const command = defineCommand({
  name: "verify",
  category: "Safety",
  description: "check every manifest and every byte of every chunk, also of kept versions",
  summary: "check every byte of objects",
  examples: [
    ["verify", "read and check everything"],
    ["verify --quick", "check by listings only, without reading chunks"],
    ["verify photos/cat.jpg", "check one object"],
  ],
  args,
  failsWhen: "something is damaged, or a region did not answer",
  run: async (values) => (await import("./verify.ts")).verify(values),
});
