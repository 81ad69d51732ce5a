/**
 * A walk that applies the keys of the configuration to objects and the versions that are kept of them: the current key
 * signs what another one has signed, and the first secret encrypts data keys. The chunks stay where they are.
 */
import { toAgaroseError, type AgaroseError } from "@agarose/core";
import { signingKeyId } from "../config/signing.ts";
import { walkObjects, type Walk, type WalkOptions } from "../listing/walk-objects.ts";
import type { DeploymentParts } from "../parts.ts";
import { applyKeys, applyKeysToHistory, type AppliedKeys, type ApplyKeysContext } from "./apply-keys.ts";

/** The objects to re-sign and re-encrypt. */
export interface ApplyKeysOptions extends WalkOptions, Pick<ApplyKeysContext, "vouches" | "dryRun"> {
  /** With `vouches`: whether to take the newest manifest where regions hold different ones. Default: false. */
  readonly acceptsNewest?: boolean;
  readonly onOutcome: (outcome: ApplyKeysOutcome) => Promise<void>;
}

/** The outcome of one object. */
export type ApplyKeysOutcome =
  | { readonly key: string; readonly outcome: AppliedKeys }
  | { readonly key: string; readonly outcome: "failed"; readonly error: AgaroseError };

/** How many objects came to which end. */
export type ApplyKeysTotals = Readonly<Record<ApplyKeysOutcome["outcome"], number>>;

const NONE: ApplyKeysTotals = { applied: 0, due: 0, current: 0, failed: 0 };
const OBJECTS_AT_A_TIME = 4;

/** Walks once. A failure of one object is an outcome. It throws as `walkObjects` does. */
export async function applyKeysToObjects(
  options: ApplyKeysOptions,
  context: DeploymentParts,
): Promise<ApplyKeysTotals> {
  const { vouches = false, acceptsNewest = false, dryRun = false, onOutcome } = options;
  const own = { ...context, vouches, acceptsNewest, dryRun, keyId: await signingKeyId(context.config) };
  const walk: Walk<ApplyKeysOutcome, ApplyKeysTotals> = {
    name: `keys apply${dryRun ? " dry" : ""}`,
    options,
    objectsAtATime: OBJECTS_AT_A_TIME,
    act: (key) => applyToOne(key, own),
    add: (totals, { outcome }) => ({ ...totals, [outcome]: totals[outcome] + 1 }),
    onResult: onOutcome,
  };
  return walkObjects(walk, NONE, context);
}

/** Undefined for an object that was removed, and of which no kept version was re-signed. */
async function applyToOne(
  key: string,
  context: DeploymentParts & ApplyKeysContext,
): Promise<ApplyKeysOutcome | undefined> {
  try {
    const outcome = await applyKeys(key, context);
    const copies = await applyKeysToHistory(key, context);
    if (copies > 0) return { key, outcome: context.dryRun ? "due" : "applied" };
    return outcome && { key, outcome };
  } catch (error) {
    context.signal.throwIfAborted();
    return { key, outcome: "failed", error: toAgaroseError(error) };
  }
}
