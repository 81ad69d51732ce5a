/** The checks of this room: they throw REQUEST_INVALID, so that what is not a number changes nothing. */
import { refuse } from "../checked.ts";

/** A finite number from `min` on. */
export function asNumber(value: number, field: string, min = -Number.MAX_VALUE): number {
  if (Number.isFinite(value) && value >= min) return value;
  return refuse(field, `must be a finite number >= ${min}, got ${value}`, "REQUEST_INVALID");
}

/** An integer from `min` to 2^53 - 1. */
export function asInteger(value: number, field: string, min: number): number {
  if (Number.isSafeInteger(value) && value >= min) return value;
  return refuse(field, `must be an integer >= ${min}, got ${value}`, "REQUEST_INVALID");
}
