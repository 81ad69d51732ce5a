import { defineCommand, flag, option } from "../../command.ts";
import { KEY } from "../../ui/args.ts";
import { parseDuration } from "@agarose/storage/maintenance/amounts";

/** A PoP accepts no signature of a longer time. */
const EXPIRES_MS_MAX = 7 * 86_400_000;

/** Its arguments and options. */
export const args = {
  key: KEY,
  expires: option("<duration>", "how long the link works, such as 12h; at most 7d (default: 1d)", {
    parse: parseDuration({ max: EXPIRES_MS_MAX }),
  }),
  prefix: flag("open every key below this one, which ends with a slash, including future ones"),
  password: flag("let the browser ask for a password, which is printed below the link"),
  pop: option("<name>", "the PoP that the link leads to (default: the first of the configuration)"),
};

/** `agarose share`. */
export const command = defineCommand({
  name: "share",
  category: "Objects",
  description:
    "print a link to an object, which opens a private key until it expires. With --prefix it opens all keys below one: " +
    "put the rest of a key before the question mark. AGAROSE_SIGNING_KEY is the SIGNING_KEY of the PoPs",
  summary: "print an expiring link to private objects",
  examples: [
    ["share members/report.pdf --expires 7d", "print a link for a week"],
    ["share members/album/ --prefix", "print a link to everything below members/album/"],
    ["share members/report.pdf --password", "print a link and its password, to send by two ways"],
  ],
  args,
  failsWhen: "there is no such object, or too few regions answer",
  run: async (values) => (await import("./share.ts")).share(values),
});
