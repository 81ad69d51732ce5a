/** The view of readers with the secrets of objects that may be encrypted or compressed. */
import { openContent, type OpenedObject } from "@agarose/core/content";
import type { Manifest } from "@agarose/core/format";
import { secretsOf, type EncryptionConfig } from "./secrets-of.ts";

const NO_SECRETS: EncryptionConfig = { encryption: [] };

/**
 * Opens an object; undefined where its stored bytes are its content.
 *
 * @throws SECRET_MISSING, SECRET_WRONG, DECRYPTION_FAILED, MANIFEST_NEWER, MANIFEST_INVALID or CONFIG_INVALID.
 */
export function openedContent(
  manifest: Manifest,
  config: EncryptionConfig = NO_SECRETS,
): Promise<OpenedObject | undefined> {
  return openContent(manifest, () => secretsOf(config).dataKeyOf(manifest));
}

/** The manifest with length, type, headers and SHA-256 of the content. Throws as `openedContent` does. */
export async function shownManifest(manifest: Manifest, config: EncryptionConfig): Promise<Manifest> {
  return (await openedContent(manifest, config))?.shown ?? manifest;
}

/** Whether an object is encrypted or not as the configuration wants it for its key. Rejects with CONFIG_INVALID. */
export async function isAsConfigured({ key, encryption }: Manifest, config: EncryptionConfig): Promise<boolean> {
  return (encryption !== undefined) === ((await secretsOf(config).forWriting(key)) !== undefined);
}
