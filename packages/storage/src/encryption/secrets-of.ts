/** The secrets that a configuration names. They are read when an object first needs one. */
import { readFile } from "node:fs/promises";
import { AgaroseError } from "@agarose/core";
import { openContent, type OpenedObject } from "@agarose/core/content";
import { openSecret, Secrets } from "@agarose/core/encryption";
import type { Manifest } from "@agarose/core/format";
import { runUserCommand } from "../config/user-command.ts";
import type { Config, SecretLocation } from "../config/config-schema.ts";

/** The part of a configuration that says what is encrypted. */
export type EncryptionConfig = Pick<Config, "encryption">;

const known = new WeakMap<EncryptionConfig["encryption"], Secrets>();

/** Returns the secrets of `config`. They reject with CONFIG_INVALID where one cannot be read. */
export function secretsOf({ encryption }: EncryptionConfig): Secrets {
  let secrets = known.get(encryption);
  if (!secrets) {
    const rules = encryption.map(({ prefix, secrets: places }) => ({
      prefix,
      secrets: places.map((place) => () => readSecret(place)),
    }));
    known.set(encryption, (secrets = new Secrets(rules)));
  }
  return secrets;
}

/** The text of a secret, checked. Rejects with CONFIG_INVALID. */
export async function readSecret(place: SecretLocation): Promise<string> {
  const { file, environment, command } = place;
  const where = file ?? (environment === undefined ? `the command ${command?.[0]}` : `the variable ${environment}`);
  try {
    const text = (await textOf(place)).trim();
    await openSecret(text);
    return text;
  } catch (error) {
    const message = `${where} holds no secret (${(error as Error).message}): make one with \`agarose keys secret\``;
    throw new AgaroseError("CONFIG_INVALID", message, { field: "encryption" }, error);
  }
}

async function textOf({ file, environment, command = [] }: SecretLocation): Promise<string> {
  if (file !== undefined) return readFile(file, "utf8");
  if (environment !== undefined) return process.env[environment] ?? "";
  return runUserCommand(command);
}

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
