import { defineCommand, option } from "../../command.ts";
import { CURSOR, DRY_RUN, JSON_LINES, KEY_PREFIX, SHARD } from "../../ui/args.ts";
import { parseDuration, parseMoney, parseRate, parseShare } from "@agarose/storage/maintenance/amounts";

/** The longest timer of the system. */
const EVERY_MS_MAX = 24 * 86_400_000;

/** Its arguments and options. */
export const args = {
  prefix: KEY_PREFIX,
  every: option("<duration>", "repeat at this interval until Ctrl-C, for example 1d; at most 24d", {
    parse: parseDuration({ max: EVERY_MS_MAX }),
  }),
  sample: option("<share>", "fully read a random share of the objects, such as 1%", { parse: parseShare }),
  age: option("<duration>", "fully read every object within this time, a part in each scan, such as 30d", {
    parse: parseDuration(),
  }),
  bandwidth: option("<rate>", "limit these full reads to this rate on average, such as 10MB/s", { parse: parseRate }),
  budget: option("<dollars>", "stop reading in full after spending this much on egress, by egressUsdPerGb", {
    parse: parseMoney,
  }),
  metrics: option("<file>", "write the results of a scan for Prometheus, in the format of node_exporter's text files"),
  dryRun: { ...DRY_RUN, description: "list the damage, most endangered objects first, and repair nothing" },
  shard: SHARD,
  cursor: CURSOR,
  jsonLines: JSON_LINES,
};

/** `agarose scrub`. */
export const command = defineCommand({
  name: "scrub",
  category: "Safety",
  description: "find objects with missing chunks by listings, and repair those with the fewest spare chunks first",
  summary: "check all objects cheaply, and repair the most endangered first",
  examples: [
    ["scrub", "check all objects by listings, and repair them"],
    ["scrub --every 1d --age 30d", "scan daily, and read everything once a month"],
    ["scrub --sample 1% --budget 5", "read a hundredth in full, for at most $5"],
  ],
  args,
  failsWhen: "something stays damaged, or a region did not answer",
  run: async (values) => (await import("./scrub.ts")).scrub(values),
});
