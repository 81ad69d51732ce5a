/** The fields of a stored manifest, each with what makes it usable. */
import { HAS_MESSAGES } from "../../errors.ts";
import { isCount, isRecord, isText } from "../shape.ts";
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
  signature: (value) => value === undefined || isSignature(value),
};

/** Fields of manifests. */
export const FIELDS: FieldChecks = {
  ...GENERATION_FIELDS,
  version: (value) => isText(value, ID),
  sha256: (value) => isText(value, SHA256),
  bytes: (value) => isCount(value),
  // `checkCode` says more of it.
  stripeBytes: (value) => value !== undefined,
  upload: (value) => isText(value, ID),
  contentType: (value) => isHeaderValue("content-type", value),
  blockBytes: (value) => isCount(value, STRIPE_BYTES_MAX) && value > 0,
  hashesSha256: (value) => value === undefined || isText(value, SHA256),
  hashesRoot: (value) => value === undefined || isText(value, SHA256),
  requires: (value) => value === undefined || (Array.isArray(value) && value.every((feature) => isText(feature))),
  inline: (value) => value === undefined || isText(value, /^[A-Za-z0-9+/]*={0,2}$/),
  leaves: (value) => value === undefined || (Array.isArray(value) && value.every((region) => isText(region))),
  extra: (value) => value === undefined || isExtra(value),
  missing: (value) =>
    value === undefined || (Array.isArray(value) && value.every((chunk) => isCount(chunk, CHUNKS_MAX))),
};

function isExtra(value: unknown): boolean {
  const { upload, placement, sha256 } = (isRecord(value) ? value : {}) as Partial<Extra>;
  return (
    isText(upload, ID) &&
    Array.isArray(placement) &&
    Array.isArray(sha256) &&
    placement.length > 0 &&
    placement.length === sha256.length &&
    placement.every((region) => isText(region)) &&
    sha256.every((hash) => isText(hash, SHA256))
  );
}

/** Refuses a record that lacks a field or has an unusable one, with MANIFEST_INVALID. */
export function checkFields(m: object, fields: FieldChecks): void {
  for (const [field, isSound] of Object.entries(fields)) {
    if (!isSound((m as Record<string, unknown>)[field]))
      throw invalid(HAS_MESSAGES && `has no usable ${field}`, { field });
  }
}
