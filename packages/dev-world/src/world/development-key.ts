/**
 * The key pair of local worlds. Everyone knows it, so it proves nothing: only worlds on one's own machine trust it.
 */
import { createHash } from "node:crypto";

/** The private key as base64 of 32 bytes, and the public key as configurations have it. */
export const DEVELOPMENT_KEY = {
  privateKey: createHash("sha256").update("agarose development key").digest("base64"),
  publicKey: "ed25519:neL+dPiLuIEIMiFehMeiqH0impikBkQJAJEfbEZwzbo=",
} as const;
