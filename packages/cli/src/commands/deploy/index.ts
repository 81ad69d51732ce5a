import { defineCommand, flag, option } from "../../command.ts";

/** Begins the names of the environment variables of secrets; the name of the secret follows. */
export const ENV_PREFIX = "AGAROSE_SECRET_";

/** Its arguments and options. */
export const args = {
  wrangler: option(
    "<path>",
    "Wrangler's configuration, one environment per PoP (default: wrangler.jsonc, or else wrangler.toml)",
  ),
  pops: option("<names>", "only these, separated by commas", { parse: (names) => names.split(",") }),
  secrets: option("<path>", `JSON object of secrets to set; - is stdin (default: variables ${ENV_PREFIX}<NAME>)`),
  dryRun: flag("build, and print what would be done; needs no account"),
};

/** `agarose deploy`. */
export const command = defineCommand({
  name: "deploy",
  category: "Deployment",
  description: "deploy PoPs with Wrangler, and set their secrets",
  examples: [
    ["deploy --dry-run", "build, and print the steps"],
    ["deploy --pops frankfurt,tokyo", "deploy two of the PoPs"],
  ],
  args,
  failsWhen: "a step of Wrangler failed",
  run: async (values) => (await import("./deploy.ts")).deploy(values),
});
