/**
 * Signatures of the simulation: a keyed hash in the place of Ed25519, which Node computes in another thread, so that it
 * would end at any moment of virtual time.
 */
import { hash } from "node:crypto";
import { AgaroseError } from "@agarose/core";
import type { SignatureCheck, Signer } from "@agarose/core/format";

/** A machine that signs, and whose manifests it trusts. */
export interface Publisher {
  readonly sign: Signer;
  readonly trust: SignatureCheck;
  /** The keys that it trusts, as a configuration has them. */
  readonly publicKeys: readonly string[];
}

/** The key that a rotation takes out of force, the one that comes, and one that nobody trusts. */
export type Key = "first" | "next" | "stranger";

/** The lack of a machine: nothing, its signing key, all of the new key, or a separate key. */
export type Machine = "updated" | "late" | "old" | "wrong";

function rawOf(key: Key): Buffer {
  return hash("sha256", `the publisher's ${key} key`, "buffer");
}

/** The name of a key in signatures. */
export function keyIdOf(key: Key): string {
  return hash("sha256", rawOf(key)).slice(0, 16);
}

function valueOf(key: Key, signed: Uint8Array): string {
  return hash("sha512", Buffer.concat([rawOf(key), signed]), "base64");
}

function publisherOf(key: Key, trusted: readonly Key[]): Publisher {
  return {
    sign: async (signed) => ({ keyId: keyIdOf(key), value: valueOf(key, signed) }),
    trust: async (signed, signature) => {
      if (trusted.some((one) => signature?.value === valueOf(one, signed))) return;
      throw new AgaroseError("MANIFEST_UNTRUSTED", signature ? "is signed by another key" : "is not signed");
    },
    publicKeys: trusted.map((one) => `ed25519:${rawOf(one).toString("base64")}`),
  };
}

/** Signs as the publisher, and trusts it alone. */
export const PUBLISHER = publisherOf("first", ["first"]);

/** The machines of a publisher in the middle of a rotation. */
export const MACHINES: Readonly<Record<Machine, Publisher>> = {
  updated: publisherOf("next", ["first", "next"]),
  late: publisherOf("first", ["first", "next"]),
  old: PUBLISHER,
  wrong: publisherOf("stranger", ["first", "next"]),
};
