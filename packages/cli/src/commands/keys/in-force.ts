/** Puts keys and secrets into force, by the configuration that a step of `agarose keys` makes. */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { putInForce as putKeysInForce, type KeysStep } from "@agarose/storage/commit/fence";
import type { Config } from "@agarose/storage/config/config";
import { withConfig, WRITING, type GlobalOptions } from "../../lib/context.ts";
import { logLine } from "../../ui/output.ts";

/** Every kind of machine that writes, and so needs the configuration of a step. */
export const WRITERS =
  "every machine that writes needs this configuration and its keys: people, CI and cron jobs that run put, sync, rm, " +
  "restore, recode, expire, repair, scrub, gc or keys; gateways; and Workers that scrub";

/** The change that a step puts into force, and its configuration. */
export interface InForce extends KeysStep {
  readonly config: Config;
}

/** It throws as `putInForce` of the storage library does. */
export function putInForce({ config, ...step }: InForce, options: GlobalOptions): Promise<void> {
  return withConfig(config, options, WRITING, (context) => putKeysInForce(step, context));
}

/** `putInForce`, with a warning where the buckets cannot be asked, as before they are made, or have other keys. */
export async function tryPutInForce(step: InForce, options: GlobalOptions): Promise<void> {
  try {
    await putInForce(step, options);
  } catch (cause) {
    const error = toAgaroseError(cause);
    if (!(error instanceof AgaroseError) || error.code === "REGION_MISPLACED" || error.code === "ABORTED") throw error;
    const problem = `${error.code}: ${error.message}`;
    logLine(
      error.code === "KEYS_OUTDATED"
        ? `warning: ${problem}`
        : `warning: the buckets were not told (${problem}): run \`agarose doctor --fix\` once they are there`,
    );
  }
}
