/**
 * Names of the objects by which writers coordinate (docs/reference/format.md, "Names").
 */
import { encodeKey } from "@agarose/core";

export const CLAIM_PREFIX = "claims/";
export const REPAIR_PREFIX = "repairs/";
export const GARBAGE_PREFIX = "garbage/";

/** A writer's claim to generation `generation` of a key. */
export function claimName(key: string, generation: number): string {
  return `${claimPrefix(key)}${generation}`;
}

/** What the names of all claims to a key begin with. */
export function claimPrefix(key: string): string {
  return `${CLAIM_PREFIX}${encodeKey(key)}@`;
}

/** The entry of a key in the repair queue. */
export function repairName(key: string): string {
  return `${REPAIR_PREFIX}${encodeKey(key)}@`;
}

/** The mark of the garbage collector on one upload of a key. */
export function garbageName(key: string, upload: string): string {
  return `${GARBAGE_PREFIX}${encodeKey(key)}@${upload}`;
}
