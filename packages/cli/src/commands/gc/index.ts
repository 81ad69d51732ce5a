import { AgaroseError } from "@agarose/core";
import { defineCommand, flag, valued } from "../../command.ts";
import { CURSOR, DRY_RUN, JSON_LINES, PREFIX, SHARD, YES } from "../../ui/args.ts";
import { parseDuration } from "@agarose/storage/maintenance/amounts";

const HOUR_MS = 3_600_000;

/** Its arguments and options. */
export const args = {
  prefix: PREFIX,
  olderThan: valued("<duration>", "minimum age of a mark before its chunks are deleted, at least 1h", {
    default: "24h",
    parse: parseAge,
  }),
  delete: flag("mark the chunks, and delete those that an earlier run marked; without it they are only listed"),
  forgetRemoved: flag(
    "with --delete, also delete tombstones older than 30 days; a bucket could then bring removed objects back",
  ),
  dryRun: { ...DRY_RUN, description: "only list, even with --delete" },
  yes: YES,
  shard: SHARD,
  cursor: CURSOR,
  jsonLines: JSON_LINES,
};

/** `agarose gc`. */
export const command = defineCommand({
  name: "gc",
  category: "Safety",
  description: "list chunks that no object uses any more, or delete them with --delete",
  summary: "find and delete chunks that no object uses any more",
  examples: [
    ["gc", "list the chunks"],
    ["gc --delete", "mark the chunks; a run a day later deletes them"],
    ["gc --delete --older-than 7d --yes", "delete chunks that were marked a week ago"],
  ],
  args,
  failsWhen: "something could not be checked or deleted",
  run: async (values) => (await import("./gc.ts")).gc(values),
});

function parseAge(text: string): number {
  const ms = parseDuration({ min: 0 })(text);
  if (ms >= HOUR_MS) return ms;
  throw new AgaroseError(
    "USAGE",
    `${text} is less than 1h: younger chunks may belong to a put that is under way. To remove an object with its ` +
      "chunks at once, use `agarose rm`",
  );
}
