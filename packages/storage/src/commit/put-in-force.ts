/** Puts keys and secrets into force in the buckets, where every machine that writes looks for them. */
import { AgaroseError } from "@agarose/core";
import { acceptUnsigned } from "@agarose/core/format";
import {
  announce,
  announcementOf,
  newestOf,
  readAll,
  untilFenced,
  type Announcement,
  type FenceContext,
} from "./fence.ts";

/** The keys that a step of a rotation puts into force. */
export interface KeysStep {
  /** Default: the keys of the configuration. */
  readonly change?: Partial<Announcement>;
  /** Whether the configuration has just got its first key: what the buckets said until now is signed by nobody. */
  readonly isFirst?: boolean;
  /** Whether to wait until no writer can go by what was before. Default: false. */
  readonly waits?: boolean;
}

/** Throws as `announce` does; KEYS_OUTDATED also for a first key where the deployment has one already. */
export async function putInForce(
  { change = {}, isFirst = false, waits = false }: KeysStep,
  parts: FenceContext,
): Promise<void> {
  const context: FenceContext = isFirst ? { ...parts, trust: acceptUnsigned } : parts;
  if (isFirst) await refuseSigned(context);
  await announce({ ...(await announcementOf(context)), ...change }, context);
  if (waits) await untilFenced(context);
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
