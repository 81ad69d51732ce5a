/**
 * Signatures of the simulation: a keyed hash in the place of Ed25519, which Node computes in another thread, so that it
 * would end at any moment of virtual time.
 */
import { hash } from "node:crypto";
import { AgaroseError, type SignatureCheck, type Signer } from "@agarose/core";

const SECRET = "the publisher's key";
const KEY_ID = "0123456789abcdef";

function valueOf(signed: Uint8Array): string {
  return hash("sha512", Buffer.concat([Buffer.from(SECRET), signed]), "base64");
}

/** Signs as the publisher. */
export const sign: Signer = async (signed) => ({ keyId: KEY_ID, value: valueOf(signed) });

/** Trusts the publisher alone. */
export const trust: SignatureCheck = async (signed, signature) => {
  if (signature?.value === valueOf(signed)) return;
  throw new AgaroseError("MANIFEST_UNTRUSTED", signature ? "is signed by another key" : "is not signed");
};
