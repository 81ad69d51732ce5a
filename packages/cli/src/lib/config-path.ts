/** Where a command reads the configuration from. */
import { CONFIG_FILE } from "@agarose/storage/config/config";

/** The path of --config, else of the variable AGAROSE_CONFIG, else `agarose.config.json` in the working directory. */
export function configPath(given: string | undefined): string {
  return given ?? (process.env["AGAROSE_CONFIG"] || CONFIG_FILE);
}
