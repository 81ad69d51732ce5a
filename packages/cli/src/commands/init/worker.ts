/** `agarose init --worker`: writes wrangler.jsonc, by which `agarose deploy` deploys the PoPs of the configuration. */
import { existsSync } from "node:fs";
import { mkdir, readFile, realpath, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join, relative, sep } from "node:path";
import { AgaroseError } from "@agarose/core";
import { LOCATIONS } from "@agarose/worker/reference";
import { loadConfig } from "@agarose/storage/config/config";
import { configPath } from "../../lib/config-path.ts";
import type { GlobalOptions } from "../../lib/context.ts";
import { printResult } from "../../ui/output.ts";
import { knowsSetting, readRawConfig } from "../deploy/wrangler.ts";
import { GENERATED, leftOut, wranglerConfig } from "./wrangler-config.ts";

const WRANGLER_FILE = "wrangler.jsonc";

interface InitWorkerOptions extends GlobalOptions {
  readonly force?: boolean;
  /** One Worker for all continents instead of PoPs with places. */
  readonly everywhere?: boolean;
  /** Whether each PoP writes its totals to Workers Analytics Engine. */
  readonly analytics?: boolean;
}

/**
 * Writes the file into `folder`, over an older one of this command. Throws USAGE where somebody else's file is and
 * `force` is not given, and CONFIG_INVALID for a configuration without PoPs that have places.
 */
export async function initWorker(folder: string, options: InitWorkerOptions): Promise<void> {
  const config = await loadConfig(configPath(options.config));
  await mkdir(folder, { recursive: true });
  const path = join(folder, WRANGLER_FILE);
  const isThere = existsSync(path);
  const isOwn = isThere && (await readFile(path, "utf8")).startsWith(GENERATED);
  if (isThere && !isOwn && !options.force) {
    throw new AgaroseError("USAGE", `${path} is not of \`agarose init --worker\`: --force replaces it`, { path });
  }
  const previous = isOwn ? await readRawConfig(path) : {};
  const entry = createRequire(import.meta.url).resolve("@agarose/worker");
  const main = relative(await realpath(folder), entry).replaceAll(sep, "/");
  const text = wranglerConfig(config, {
    main,
    previous,
    everywhere: options.everywhere ?? false,
    analytics: options.analytics ?? false,
    locations: LOCATIONS,
    canRedact: await knowsSetting("redact_query_string"),
  });
  const outcome = !isThere || !isOwn ? "written" : text === (await readFile(path, "utf8")) ? "kept" : "updated";
  if (outcome !== "kept") await writeFile(path, text);
  const dropped = leftOut(config, previous);
  printResult(options, { files: [{ path, outcome }], leftOut: dropped }, [
    `${outcome.padEnd(8)} ${path}`,
    ...dropped.map((pop) => `left out [env.${pop}], which \`pops\` no longer names: its Worker still runs`),
    "then: npx agarose deploy --dry-run",
  ]);
}
