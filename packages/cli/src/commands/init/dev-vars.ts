/** `agarose init --dev-vars`: lets a Worker that `wrangler dev` runs read the buckets of another configuration. */
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AgaroseError } from "@agarose/core";
import { loadConfig } from "@agarose/storage/config/config";
import { configPath } from "../../lib/config-path.ts";
import type { GlobalOptions } from "../../lib/context.ts";
import { printResult } from "../../ui/output.ts";
import { sharedVariables } from "../../lib/pop-variables.ts";

/** The file that `wrangler dev` reads, and `wrangler deploy` does not. */
const DEV_VARS_FILE = ".dev.vars";
const GENERATED = "# Made by `agarose init --dev-vars`: what `wrangler dev` takes in place of the variables of a PoP.";

/**
 * Writes the file into `folder`. Throws USAGE where somebody else's file is and `force` is not given. Peers are off,
 * because those of the configuration are other processes, and one client fills the cache, because there is no other.
 */
export async function initDevVars(
  folder: string,
  options: GlobalOptions & { readonly force?: boolean },
): Promise<void> {
  const config = await loadConfig(configPath(options.config));
  const path = join(folder, DEV_VARS_FILE);
  if (existsSync(path) && !options.force && !(await readFile(path, "utf8")).startsWith(GENERATED)) {
    throw new AgaroseError("USAGE", `${path} is not of \`agarose init --dev-vars\`: --force replaces it`, { path });
  }
  const variables = { ...sharedVariables(config, { hasBindings: false }), PEERS: "off", FILL_CLIENTS_MIN: "1" };
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${quoted(value)}`);
  await mkdir(folder, { recursive: true });
  await writeFile(path, `${[GENERATED, ...lines].join("\n")}\n`);
  printResult(options, { files: [{ path, outcome: "written" }] }, [
    `written  ${path}`,
    `then: npx wrangler dev --env ${config.pops[0]?.name ?? "POP"}`,
  ]);
}

/** The quote that a value does not contain: these files know no escapes. */
function quoted(value: string): string {
  const quote = ["'", "`", '"'].find((one) => !value.includes(one));
  if (quote !== undefined) return `${quote}${value}${quote}`;
  throw new AgaroseError("CONFIG_INVALID", `${DEV_VARS_FILE} cannot hold ${value}: it has quotes of all three kinds`);
}
