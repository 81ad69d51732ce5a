/**
 * Signatures of manifests: Ed25519 (RFC 8032) by the publisher's key, checked against the keys that a reader trusts.
 */
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { isRecord, isText } from "./shape.ts";
import { fromBase64, toHex } from "./text.ts";

/** A signature as a manifest carries it. */
export interface Signature {
  /** The first 16 hex digits of the SHA-256 of the raw public key. */
  readonly keyId: string;
  /** Base64 of the 64 bytes. */
  readonly value: string;
}

/**
 * Decides whether `signature` over `signed` is by a publisher that the reader trusts.
 *
 * @throws MANIFEST_UNTRUSTED when it is not, SIGNATURE_UNSUPPORTED when this runtime cannot check Ed25519.
 */
export type SignatureCheck = (signed: Uint8Array, signature: Signature | undefined) => Promise<void>;

/** Signs bytes with the publisher's key. */
export type Signer = (signed: Uint8Array) => Promise<Signature>;

/** Accepts every manifest, signed or not: only for readers whose configuration says `unsigned`. */
export const acceptUnsigned: SignatureCheck = async () => {};

/** Of `ed25519:`. */
const PREFIX_CHARACTERS = 8;
const PUBLIC_KEY = /^ed25519:[A-Za-z0-9+/]{43}=$/;
const PUBLIC_KEYS_MAX = 8;

/**
 * A check against public keys as they are configured: `ed25519:` and the base64 of 32 bytes. Any of them may have
 * signed, so a key is replaced by adding the new one first.
 *
 * @throws CONFIG_INVALID when there is none, there are more than eight, or one of them is malformed.
 */
export function trustPublishers(publicKeys: readonly string[]): SignatureCheck {
  // Anything but a list has no length.
  if (!Array.isArray(publicKeys) || !publicKeys.length || publicKeys.length > PUBLIC_KEYS_MAX) {
    throw malformed(HAS_MESSAGES && `names ${publicKeys.length} public keys, 1 to ${PUBLIC_KEYS_MAX} are expected`);
  }
  const raw = publicKeys.map(rawPublicKey);
  let keys: Promise<readonly CryptoKey[]> | undefined;
  return async (signed, signature) => {
    // First of all, so that a runtime without Ed25519 says so whatever it reads.
    const imported = await (keys ??= importKeys(raw));
    if (!isSignature(signature)) throw untrusted(HAS_MESSAGES && "is not signed");
    const bytes = fromBase64(signature.value);
    for (const key of imported) {
      if (await crypto.subtle.verify(ALGORITHM, key, bytes, signed as Uint8Array<ArrayBuffer>)) return;
    }
    throw untrusted(
      HAS_MESSAGES && `names the key ${signature.keyId}, and none of the ${raw.length} trusted keys has signed it`,
    );
  };
}

/** Whose manifests a configuration accepts: either public keys, or everyone's by an explicit setting. */
export interface TrustSettings {
  readonly publicKeys?: readonly string[] | undefined;
  readonly unsigned?: boolean | undefined;
}

/**
 * The check that a configuration asks for. A configuration whose `places` are all on this machine may have neither
 * setting: it is of a local world, and accepts every manifest.
 *
 * @throws CONFIG_INVALID when it has both settings or neither, or a malformed key.
 */
export function trustOf(
  { publicKeys, unsigned }: TrustSettings,
  places: readonly { readonly url: string }[],
): SignatureCheck {
  if (!publicKeys && (unsigned === true || places.every(isLocal))) return acceptUnsigned;
  if (publicKeys && !unsigned) return trustPublishers(publicKeys);
  throw malformed(
    HAS_MESSAGES &&
      `has ${publicKeys ? "both" : "neither"} \`publicKeys\` ${publicKeys ? "and" : "nor"} \`"unsigned": true\`, ` +
        "one is expected: make a key with `agarose keys new`",
  );
}

/** Whether a place has an address of this machine; what listens there may pass requests on. */
export function isLocal({ url }: { readonly url: string }): boolean {
  return /^https?:\/\/(localhost|127(\.\d+){3})(:\d+)?(\/|$)/.test(url);
}

/** The 32 bytes of a configured public key. Throws CONFIG_INVALID. */
export function rawPublicKey(publicKey: string): Uint8Array<ArrayBuffer> {
  if (PUBLIC_KEY.test(publicKey)) return fromBase64(publicKey.slice(PREFIX_CHARACTERS));
  throw malformed(
    HAS_MESSAGES && `has a public key ${JSON.stringify(publicKey)}, "ed25519:" and base64 of 32 bytes are expected`,
  );
}

/** The name of a key in signatures: the first 16 hex digits of the SHA-256 of its 32 raw bytes. */
export async function keyIdOf(raw: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", raw));
  return toHex(digest.subarray(0, 8));
}

/** Whether a field of a manifest has the form of a signature. */
export function isSignature(value: unknown): value is Signature {
  return isRecord(value) && isText(value["keyId"], /^[0-9a-f]{16}$/) && isText(value["value"], /^[A-Za-z0-9+/]{86}==$/);
}

const ALGORITHM = { name: "Ed25519" };

async function importKeys(raw: readonly Uint8Array<ArrayBuffer>[]): Promise<readonly CryptoKey[]> {
  try {
    return await Promise.all(raw.map((key) => crypto.subtle.importKey("raw", key, ALGORITHM, false, ["verify"])));
  } catch (cause) {
    throw new AgaroseError(
      "SIGNATURE_UNSUPPORTED",
      HAS_MESSAGES && "this runtime cannot check Ed25519 signatures: read through a PoP, or update the browser",
      {},
      cause,
    );
  }
}

function untrusted(problem: string | false): AgaroseError {
  return new AgaroseError(
    "MANIFEST_UNTRUSTED",
    HAS_MESSAGES &&
      `manifest ${problem}: it is not used; check the public keys of the configuration and \`agarose verify\``,
  );
}

function malformed(problem: string | false): AgaroseError {
  return new AgaroseError("CONFIG_INVALID", HAS_MESSAGES && `configuration ${problem}`, { field: "publicKeys" });
}
