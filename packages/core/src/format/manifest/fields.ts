/** The fields of a stored manifest, each with what makes it usable. */
import { HAS_MESSAGES } from "../../errors.ts";
import { areTexts, isCount, isListOf, isRecord, isText } from "../shape.ts";
import { isSignature } from "../signature.ts";
import { invalid } from "./errors.ts";
import { CHUNKS_MAX, type Extra, headerCharactersMax, STRIPE_BYTES_MAX } from "./manifest.ts";

/** Whether a header can have this value: visible ASCII and spaces, which cannot end it and begin another. */
export function isHeaderValue(name: string, value: unknown): value is string {
  return isText(value, /^[\x20-\x7e]*$/) && value.length <= headerCharactersMax(name);
}

const ID = /^[0-9a-f]{32}$/;
/** SHA-256 in lower-case hexadecimal digits. */
export const SHA256 = /^[0-9a-f]{64}$/;

type FieldChecks = Readonly<Record<string, (value: unknown) => boolean>>;

/** Fields of manifests and tombstones. */
export const GENERATION_FIELDS: FieldChecks = {
  generation: (value) => isCount(value) && value > 0,
  modified: (value) =>
    isText(value, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/) && Date.parse(value) > Number.NEGATIVE_INFINITY,
  signature: optional(isSignature),
};

/** Fields of manifests. */
export const FIELDS: FieldChecks = {
  ...GENERATION_FIELDS,
  version: isId,
  sha256: isSha256,
  bytes: isCount,
  // `checkCode` says more of it.
  stripeBytes: (value) => value !== undefined,
  upload: isId,
  contentType: (value) => isHeaderValue("content-type", value),
  blockBytes: (value) => isCount(value, STRIPE_BYTES_MAX) && value > 0,
  hashesSha256: optional(isSha256),
  hashesRoot: optional(isSha256),
  requires: optional(areTexts),
  inline: optional((value) => value instanceof Uint8Array),
  leaves: optional(areTexts),
  extra: optional(isExtra),
  missing: optional((value) => isListOf(value, (chunk) => isCount(chunk, CHUNKS_MAX))),
};

function isId(value: unknown): boolean {
  return isText(value, ID);
}

function isSha256(value: unknown): boolean {
  return isText(value, SHA256);
}

function optional(isSound: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => value === undefined || isSound(value);
}

function isExtra(value: unknown): boolean {
  const { upload, placement, sha256 } = (isRecord(value) ? value : {}) as Partial<Extra>;
  return (
    isId(upload) &&
    areTexts(placement) &&
    areTexts(sha256, SHA256) &&
    placement.length > 0 &&
    placement.length === sha256.length
  );
}

/** Refuses a record that lacks a field or has an unusable one, with MANIFEST_INVALID. */
export function checkFields(m: object, fields: FieldChecks): void {
  for (const [field, isSound] of Object.entries(fields)) {
    if (!isSound((m as Record<string, unknown>)[field]))
      throw invalid(HAS_MESSAGES && `has no usable ${field}`, { field });
  }
}
