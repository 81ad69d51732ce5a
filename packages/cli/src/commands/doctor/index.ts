import { ADMIN_TOKEN_VARIABLE } from "@agarose/storage/pops/admin-token";
import { defineCommand, flag, option } from "../../command.ts";
import { JSON_LINES } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  origin: option("<origin>", "origin of the web app, which CORS is checked for; default any"),
  uploads: flag("also check that pages of that origin may store objects (CORS for PUT)"),
  fix: flag("make missing buckets, set CORS, and allow public reads of buckets that are not private"),
  dryRun: flag("with --fix: show the changes to the buckets without making them"),
  verbose: flag("print every check, also those of regions and PoPs that pass"),
  deployed: flag(`check deployed PoPs instead; set ${ADMIN_TOKEN_VARIABLE} to their ADMIN_TOKEN`),
  jsonLines: JSON_LINES,
};

/** `agarose doctor`. */
export const command = defineCommand({
  name: "doctor",
  category: "Deployment",
  description:
    "check endpoints, credentials, public reads, Range, CORS, clocks, PoPs, signing, and how many losses the layout survives",
  summary: "check buckets, configuration and PoPs, and fix buckets",
  examples: [
    ["doctor", "check buckets and configuration"],
    ["doctor --fix", "also create buckets and correct their settings"],
    ["doctor --deployed", "check PoPs that are deployed"],
  ],
  args,
  failsWhen: "a check failed",
  run: async (values) => (await import("./doctor.ts")).doctor(values),
});
