/** Puts keys and secrets into force in the buckets, where every machine that writes looks for them. */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { acceptUnsigned } from "@agarose/core/format";
import type { Config } from "@agarose/storage/config/config";
import { withConfig, WRITING, type GlobalOptions } from "../../lib/context.ts";
import {
  announce,
  announcementOf,
  newestOf,
  readAll,
  untilFenced,
  type Announcement,
  type FenceContext,
} from "@agarose/storage/commit/fence";
import { logLine } from "../../ui/output.ts";

/** Every kind of machine that writes, and so needs the configuration of a step. */
export const WRITERS =
  "every machine that writes needs this configuration and its keys: people, CI and cron jobs that run put, sync, rm, " +
  "restore, recode, expire, repair, scrub, gc or keys; gateways; and Workers that scrub";

/** What a step puts into force. Keys that it leaves out are those of `config`. */
export interface InForce {
  readonly config: Config;
  readonly change: Partial<Announcement>;
  /** Whether `config` has just got its first key: what the buckets said until now is signed by nobody. */
  readonly isFirst?: boolean;
  /** Whether to wait until no writer can go by what was before. Default: false. */
  readonly waits?: boolean;
}

/** Throws as `announce` does; KEYS_OUTDATED also for a first key where the deployment has one already. */
export function putInForce(
  { config, change, isFirst = false, waits = false }: InForce,
  options: GlobalOptions,
): Promise<void> {
  return withConfig(config, options, WRITING, async (command) => {
    const context: FenceContext = { ...command, ...(isFirst && { trust: acceptUnsigned }) };
    if (isFirst) await refuseSigned(context);
    await announce({ ...(await announcementOf(context)), ...change }, context);
    if (waits) await untilFenced(context);
  });
}

/** A key that this machine has never had must not go out of force by its hand. */
async function refuseSigned(context: FenceContext): Promise<void> {
  const { signers = [] } = newestOf(await readAll(context)) ?? {};
  if (signers.length === 0) return;
  const message =
    `${signers.join(" and ")} signs in these buckets, and this configuration has never had that key: nothing was changed ` +
    "in them, and they take no write by the new key. Use the configuration and the key of their deployment, where " +
    "`agarose keys rotate` replaces it, or name other buckets";
  throw new AgaroseError("KEYS_OUTDATED", message, { signers });
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
