/**
 * Arguments and options that several commands have. Every help loads this module, so it imports nothing that does the
 * work.
 */
import { AgaroseError } from "@agarose/core";
import { HEADERS_ALLOWED } from "@agarose/core/format";
import { LOG_FORMATS, type LogFormat } from "@agarose/solver/traces";
import { choice, flag, negatedFlag, option, positional, repeatable } from "../command.ts";
import { parseInventoryPlace, parseShard } from "@agarose/storage/maintenance/amounts";
import { parseCount } from "./units.ts";

/** The key of one object. */
export const KEY = positional("<key>", "key of the object");
/** A prefix that is an argument. */
export const PREFIX = positional("[prefix]", "all keys when left out", "");
/** The keys of a walk, which takes all objects without any. */
export const KEYS = positional("[key...]", "keys of objects; all objects when left out");
/** A prefix that is an option. */
export const KEY_PREFIX = option("<prefix>", "all objects whose keys begin with this");

/** Answers the question of `confirm` beforehand. */
export const YES = flag("do not ask for confirmation, as in scripts", { short: "y" });
/** Of every verb that writes or removes. */
export const DRY_RUN = flag("show what would be done, and do nothing");
/** A verb that replaces or removes objects purges the PoPs otherwise. */
export const NO_PURGE = negatedFlag("do not purge the PoPs of the configuration");
/** Links are omitted otherwise where they lead out of a folder. */
export const FOLLOW = flag("follow links that lead out of a folder");

/** `ReportStream` takes it. */
export const JSON_LINES = flag("print one JSON document for each result, then one with the summary");
/** By it a walk that was interrupted continues. */
export const CURSOR = option(
  "<file>",
  "save the last finished key in this file, and continue after it if the file exists",
);

/** By it several processes share a walk. */
export const SHARD = option(
  "<i/n>",
  "only the i-th of n equal shares of the keys, such as 2/8; other machines run the rest",
  {
    parse: parseShard,
  },
);

/** By it a walk lists no such region. */
export const INVENTORY = repeatable(
  "<place>",
  "REGION=s3://BUCKET/FOLDER of an S3 Inventory (CSV), read in place of listing this region; repeatable",
  { parse: parseInventoryPlace },
);

/** Throws USAGE where nothing would be listed, so that no inventory would be read. */
export function refuseIdleInventory(options: {
  readonly inventory: readonly unknown[];
  readonly keys: readonly string[];
  readonly queued?: boolean | undefined;
}): void {
  const { inventory, keys, queued } = options;
  if (inventory.length === 0 || (keys.length === 0 && !queued)) return;
  const message =
    "--inventory replaces the listing of all keys: leave it out with keys or --queued, which list nothing";
  throw new AgaroseError("USAGE", message);
}

/** By it a command reads from what is left when most regions do not answer. */
export const CONSISTENCY = choice(
  "strong reads the newest version of a majority of the regions; eventual reads the first valid copy, which may be " +
    "older, from one region and k chunks",
  ["strong", "eventual"],
);

/** `parseHeaders` takes its value. */
export const HEADER = repeatable(
  "<line>",
  `response header "name: value", repeatable: ${[...HEADERS_ALLOWED].join(", ")}`,
);

/** How many objects a verb works on at a time. `usual` is how many without the option. */
export const jobs = (usual: string) =>
  option("<count>", `objects at a time; default ${usual}`, { parse: parseCount({ min: 1, max: 64 }) });
/** Of a verb whose stores slow it down when they ask for fewer requests. */
export const JOBS = jobs("as many as the stores take");

/** The format of an access log. */
export const LOG_FORMAT = option<LogFormat>("<format>", `of the log: ${LOG_FORMATS.join(", ")} (default: recognised)`, {
  parse(text) {
    const format = LOG_FORMATS.find((name) => name === text);
    if (format) return format;
    throw new AgaroseError("USAGE", `${text} is not one of ${LOG_FORMATS.join(", ")}`, { text });
  },
});
