/** Puts keys and secrets into force in the buckets, where every machine that writes looks for them. */
import { AgaroseError, systemClock, toAgaroseError, type SignatureCheck } from "@agarose/core";
import type { Config } from "../../lib/config.ts";
import { withConfig, WRITING, type GlobalOptions } from "../../lib/context.ts";
import { Breaker } from "../../lib/objects/commit/ask-regions.ts";
import {
  announce,
  announcementOf,
  untilFenced,
  type Announcement,
  type FenceContext,
} from "../../lib/objects/commit/fence.ts";
import { logLine } from "../../lib/output.ts";

/** Every kind of machine that writes, and so needs the configuration of a step. */
export const WRITERS =
  "every machine that writes needs this configuration and its keys: people, CI and cron jobs that run put, sync, rm, " +
  "restore, recode, expire, repair, scrub, gc or upgrade; gateways; and Workers that scrub";

/** What a step puts into force. Keys that it leaves out are those of `config`. */
export interface InForce {
  readonly config: Config;
  readonly change: Partial<Announcement>;
  /** Whose records are believed. Default: those of the keys of `config`. */
  readonly trust?: SignatureCheck;
  /** Whether to wait until no writer can go by what was before. Default: false. */
  readonly waits?: boolean;
}

/** Throws as `announce` does. */
export function putInForce({ config, change, trust, waits = false }: InForce, options: GlobalOptions): Promise<void> {
  return withConfig(config, options, WRITING, async (command) => {
    const breaker = new Breaker(systemClock);
    const context: FenceContext = { ...command, clock: systemClock, breaker, ...(trust && { trust }) };
    await announce({ ...(await announcementOf(context)), ...change }, context);
    if (waits) await untilFenced(context);
  });
}

/** `putInForce`, with a warning where the buckets cannot be asked, as before they are made. */
export async function tryPutInForce(step: InForce, options: GlobalOptions): Promise<void> {
  try {
    await putInForce(step, options);
  } catch (cause) {
    const error = toAgaroseError(cause);
    if (!(error instanceof AgaroseError) || error.code === "REGION_MISPLACED" || error.code === "ABORTED") throw error;
    logLine(
      `warning: the buckets were not told (${error.code}: ${error.message}): run \`agarose doctor --fix\` once they are there`,
    );
  }
}
