/** The encryption fields of a manifest, and the values that readers refuse. */
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { invalid, newer } from "../format/manifest/errors.ts";
import type { Encryption, Manifest } from "../format/manifest/manifest.ts";
import { isRecord, isText } from "../format/shape.ts";
import { isEncryptedLength } from "./cells.ts";

/** The only cipher of today: AES-256-GCM. */
export const CIPHER = "A256GCM";

/** A manifest whose object may be encrypted. */
export type EncryptedManifest = Pick<Manifest, "key" | "bytes" | "encryption">;

/** The `encryption` of a manifest that has it. Throws MANIFEST_NEWER or MANIFEST_INVALID. */
export function encryptionOf({ encryption, bytes }: EncryptedManifest): Encryption {
  if (!isRecord(encryption)) throw invalid(HAS_MESSAGES && "has no usable encryption");
  const { cipher, secret, dataKey, properties } = encryption as Partial<Encryption>;
  if (isText(cipher) && cipher !== CIPHER) throw newer(HAS_MESSAGES && `the cipher ${cipher}`, { cipher });
  const isSound =
    isText(secret, /^[0-9a-f]{16}$/) &&
    isText(dataKey, /^[A-Za-z0-9+/]{80}$/) &&
    isText(properties, /^([A-Za-z0-9+/]{4})+([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/) &&
    isEncryptedLength(bytes);
  if (!isSound || cipher !== CIPHER) throw invalid(HAS_MESSAGES && "has no usable encryption");
  return encryption;
}

/** DECRYPTION_FAILED: `what` of the object does not have the tag that it must have. */
export function decryptionFailed({ key }: Pick<Manifest, "key">, what: string | false): AgaroseError {
  return new AgaroseError(
    "DECRYPTION_FAILED",
    HAS_MESSAGES && `${JSON.stringify(key)} does not decrypt: ${what} was changed, or is of another object`,
    { key },
  );
}
