/**
 * Policies that no PoP has, because they only show what PoPs are compared with: those of general caches, and bounds.
 */
import { clairvoyant } from "./clairvoyant.ts";
import { plain, withChunks, type PolicyDefinition } from "./define-policy.ts";
import { gdsf } from "./gdsf.ts";
import { POLICY_NAMES } from "./names.ts";
import { s3Fifo } from "./s3-fifo.ts";
import { sieve } from "./sieve.ts";
import { wTinyLfu } from "./w-tinylfu.ts";

/** For `createPolicy`. */
export const COMPARED: readonly PolicyDefinition[] = [
  // Keeps nothing: every read goes to the regions. The baseline without a cache.
  plain("backend", () => ({ onRequest: () => undefined })),
  withChunks("gdsf", gdsf),
  withChunks("w-tinylfu", wTinyLfu),
  withChunks("s3-fifo", s3Fifo),
  withChunks("sieve", sieve),
  plain("clairvoyant", clairvoyant),
];

/** The names of all policies. */
export const ALL_POLICY_NAMES: readonly string[] = [...POLICY_NAMES, ...COMPARED.map(({ name }) => name)];
