/**
 * Names of the objects by which writers coordinate (docs/reference/format.md, "Names").
 */
import { keyName } from "@agarose/core/format";

/** Names of writers' claims begin with this. */
export const CLAIM_PREFIX = "claims/";
/** Names of batches begin with this. No name of a key begins with a `!`. */
export const BATCH_PREFIX = `${CLAIM_PREFIX}!batch/`;
/** Names of the repair queue begin with this. */
export const REPAIR_PREFIX = "repairs/";
/** Names of the garbage collector's marks begin with this. */
export const GARBAGE_PREFIX = "garbage/";
/** The name of what a bucket says of its deployment begins with this. */
export const CONTROL_PREFIX = "control/";
/** Names of what a sync remembers of its prefix begin with this. */
export const SYNC_PREFIX = "syncs/";
/** Names of the copies that are the history of a key begin with this. */
export const HISTORY_PREFIX = "history/";
/** Of the objects by which the garbage collector reads the clock of a region. No name of a key begins with a `!`. */
export const CLOCK_PREFIX = `${GARBAGE_PREFIX}!clock/`;

/** The beginning that two names have in common. */
export function commonStart(a: string, b: string): string {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return a.slice(0, length);
}

/** A writer's claim to generation `generation` of a key. */
export function claimName(key: string, generation: number): string {
  return `${claimPrefix(key)}${generation}`;
}

/** The common prefix of the names of all claims to a key. */
export function claimPrefix(key: string): string {
  return `${CLAIM_PREFIX}${keyName(key)}`;
}

/** The entry of a key in the repair queue. */
export function repairName(key: string): string {
  return `${REPAIR_PREFIX}${keyName(key)}`;
}

/** The mark of gc on one upload of a key. `manifests` names what the regions held, or is `second`. */
export function garbageName(key: string, upload: string, manifests: string): string {
  return `${GARBAGE_PREFIX}${keyName(key)}${upload}.${manifests}`;
}

/** The copy of the manifest of one upload, which the writer of generation `replacedBy` stores. */
export function historyName(key: string, upload: string, replacedBy: number): string {
  return `${historyPrefix(key)}${upload}.${replacedBy}`;
}

/** The common prefix of the names of all copies of a key. */
export function historyPrefix(key: string): string {
  return `${HISTORY_PREFIX}${keyName(key)}`;
}
