/**
 * SHA-256 for the SDK's signer. Its own makes a key of the same secret for each request, which takes six times as long
 * as to hash what is signed.
 */
import { createHash, createHmac, createSecretKey, type Hash, type Hmac, type KeyObject } from "node:crypto";

type Secret = string | ArrayBuffer | ArrayBufferView;

/** The signer keeps the signing key of a day, so it is one object for all requests. */
const keys = new WeakMap<object, KeyObject>();

/** As the SDK asks for it: with a secret, it is an HMAC. */
export class SigningHash {
  #hash: Hash | Hmac;
  readonly #secret: Secret | undefined;

  constructor(secret?: Secret) {
    this.#secret = secret;
    this.#hash = begin(secret);
  }

  update(data: Uint8Array): void {
    this.#hash.update(data);
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    this.#hash = begin(this.#secret);
  }
}

function begin(secret: Secret | undefined): Hash | Hmac {
  if (secret === undefined) return createHash("sha256");
  return createHmac("sha256", typeof secret === "string" ? secret : keyOf(secret));
}

function keyOf(secret: Exclude<Secret, string>): KeyObject {
  let key = keys.get(secret);
  if (key) return key;
  const { buffer, byteOffset, byteLength } = ArrayBuffer.isView(secret) ? secret : new Uint8Array(secret);
  key = createSecretKey(Buffer.from(buffer, byteOffset, byteLength));
  keys.set(secret, key);
  return key;
}
