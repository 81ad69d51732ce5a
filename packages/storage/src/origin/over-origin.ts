/**
 * Puts and removals of keys that only the origin may have: below a rule of `keep`, its object is adopted first, so that
 * it becomes a version of the history as any other.
 */
import { parseKey } from "@agarose/core/format";
import { keepMsOf } from "../commit/history.ts";
import { readRecord } from "../objects/manifests.ts";
import { putObject, type PutObject, type PutResult } from "../objects/put-object.ts";
import { removeObject, type RemoveHow, type RemoveResult } from "../objects/remove-object.ts";
import type { DeploymentParts } from "../parts.ts";
import { adoptTogether } from "./read-through.ts";

/**
 * `putObject`, over the origin. Beside what that throws: SOURCE_FAILED, READ_TIMEOUT or REPLACED_MEANWHILE where the
 * origin does not say or give what it has, and nothing is put then.
 */
export async function putOverOrigin(object: PutObject, context: DeploymentParts): Promise<PutResult> {
  const { isAbsent, claim, ...others } = object;
  // A condition is on what the regions have, and its caller has looked at the origin.
  const isKnown = object.onlyIf !== undefined || object.etag !== undefined || claim?.survey.newest !== undefined;
  const isAdopted = !isKnown && (await adoptKept(object.key, isAbsent === true, context));
  return putObject(isAdopted ? others : object, context);
}

/** `removeObject` without a condition, over the origin. It throws as `putOverOrigin` and `removeObject` do. */
export async function removeOverOrigin(
  key: string,
  context: DeploymentParts,
  how: Pick<RemoveHow, "claim"> = {},
): Promise<RemoveResult | undefined> {
  // A batch claims what the regions have.
  if (!how.claim) await adoptKept(key, false, context);
  return removeObject(key, context, how);
}

/**
 * Adopts what only the origin has, where `keep` wants it. Returns whether the regions may know the key only since now.
 * Costs a read of the regions, and a listing of unknown keys.
 */
export async function adoptKept(key: string, isAbsent: boolean, context: DeploymentParts): Promise<boolean> {
  const { origin, config } = context;
  parseKey(key);
  if (!origin || keepMsOf(key, config) === 0) return false;
  if (!isAbsent && (await mayBeKnown(key, context))) return false;
  return adoptTogether(key, origin, context);
}

/** An unreadable object is for the writer to judge, because the origin cannot replace it. */
async function mayBeKnown(key: string, context: DeploymentParts): Promise<boolean> {
  const read = await readRecord(key, context, { isReadOnly: true }).catch(() => undefined);
  return read === undefined || read.record !== undefined;
}
