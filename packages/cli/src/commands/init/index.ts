import { AgaroseError } from "@agarose/core";
import { defineCommand, flag, positional, valued } from "../../command.ts";

/** Its arguments and options. */
export const args = {
  folder: positional(
    "[folder]",
    "folder served at the root of the app's origin; default that of the framework, or public",
  ),
  dryRun: flag("list the files that would be written, and the lines to add to your own files; write nothing"),
  prefix: valued("<path>", "path prefix that is read through Agarose", { parse: parsePrefix, default: "/ec/" }),
  force: flag("replace an existing client configuration, or another wrangler.jsonc"),
  remove: flag("replace the service worker by one that unregisters itself and deletes its stored data"),
  worker: flag("write wrangler.jsonc of the PoPs instead, into the folder or else the working directory"),
  devVars: flag("write .dev.vars instead, by which `wrangler dev` reads the buckets of this configuration"),
  everywhere: flag("with --worker: one Worker for all continents, instead of PoPs with places"),
  analytics: flag("with --worker: write totals to Workers Analytics Engine, once it is enabled in the account"),
};

/** `agarose init`. */
export const command = defineCommand({
  name: "init",
  category: "Deployment",
  description: "write the service worker's files and a client configuration into a web app's folder of static files",
  summary: "set up a web app, or the PoPs",
  examples: [
    ["init --dry-run", "list the files that would be written"],
    ["init public", "write them into a folder"],
    ["init --worker", "write wrangler.jsonc for the PoPs"],
  ],
  args,
  run: async (values) => (await import("./init.ts")).init(values.folder, values),
});

function parsePrefix(prefix: string): string {
  if (/^\/([^/?#]+\/)+$/.test(prefix)) return prefix;
  throw new AgaroseError("USAGE", `${prefix} is not a path such as /ec/, with a slash at both ends`, { prefix });
}
