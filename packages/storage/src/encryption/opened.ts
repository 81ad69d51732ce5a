/** What readers with the secrets see of objects that may be encrypted. */
import { openEncrypted, type OpenedObject } from "@agarose/core/encryption";
import type { Manifest } from "@agarose/core/format";
import { secretsOf, type EncryptionConfig } from "./secrets-of.ts";

const NO_SECRETS: EncryptionConfig = { encryption: [] };

/**
 * Opens an object; undefined where it is not encrypted.
 *
 * @throws SECRET_MISSING, SECRET_WRONG, DECRYPTION_FAILED, MANIFEST_NEWER, MANIFEST_INVALID or CONFIG_INVALID.
 */
export async function openIfEncrypted(
  manifest: Manifest,
  config: EncryptionConfig = NO_SECRETS,
): Promise<OpenedObject | undefined> {
  if (!manifest.encryption) return undefined;
  return openEncrypted(manifest, await secretsOf(config).dataKeyOf(manifest));
}

/** The manifest with length, type, headers and SHA-256 of the plain content. Throws as `openIfEncrypted` does. */
export async function shownManifest(manifest: Manifest, config: EncryptionConfig): Promise<Manifest> {
  return (await openIfEncrypted(manifest, config))?.shown ?? manifest;
}

/** Whether an object is encrypted or not as the configuration wants it for its key. Rejects with CONFIG_INVALID. */
export async function isAsConfigured({ key, encryption }: Manifest, config: EncryptionConfig): Promise<boolean> {
  return (encryption !== undefined) === ((await secretsOf(config).forWriting(key)) !== undefined);
}
