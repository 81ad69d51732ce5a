/** Configurations that are modules, such as `agarose.config.ts`. It loads nothing. */
import type * as v from "valibot";
import type { configSchema } from "./config-schema.ts";

/** A configuration as a file has it: what has a default may be absent. */
export type ConfigInput = v.InferInput<typeof configSchema>;

/** Returns `config`, whose fields an editor then completes and checks. */
export function defineConfig(config: ConfigInput): ConfigInput {
  return config;
}
