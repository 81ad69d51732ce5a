/** The definition of `agarose verify`. */
import { defineCommand, flag } from "../../command.ts";
import { CURSOR, JSON_LINES, KEYS, KEY_PREFIX, jobs } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  keys: KEYS,
  prefix: KEY_PREFIX,
  quick: flag("by what the regions list, without reading chunks: finds what is missing or has another length"),
  jobs: jobs("2, or 16 with --quick"),
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
    ["verify --quick", "check by listings alone, which reads no chunk"],
    ["verify photos/cat.jpg", "check one object"],
  ],
  args,
  failsWhen: "something is damaged, or a region did not answer",
  run: async (values) => (await import("./verify.ts")).verify(values),
});
