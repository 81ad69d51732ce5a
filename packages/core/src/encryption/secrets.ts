/**
 * Secrets: 32 random bytes that encrypt the data keys of all objects below a prefix. A reader may know two of them, so
 * that one can replace the other.
 */
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { concat } from "../format/hash-tree.ts";
import type { Encryption } from "../format/manifest/manifest.ts";
import { isText } from "../format/shape.ts";
import { fromBase64, toBase64, toHex } from "../format/text.ts";
import { systemSha256 } from "../ports.ts";
import { boundText, decryptAes, encryptAes, importAes, type CellOwner } from "./cells.ts";
import { decryptionFailed, encryptionOf, type EncryptedManifest } from "./encryption.ts";

/** A secret as configurations have it, or how to get it. */
export type SecretSource = string | (() => Promise<string>);

/** The secrets of a prefix. */
export interface SecretRule {
  /** Begins the keys of the objects. */
  readonly prefix: string;
  /** One secret, or two while one replaces the other. The first one encrypts, and both decrypt. */
  readonly secrets: readonly SecretSource[];
}

/** A secret that is ready for use. */
export interface Secret {
  /** 16 hex digits, which manifests name it by. */
  readonly id: string;
  readonly key: CryptoKey;
}

/** Of `aes256:`. */
const PREFIX_CHARACTERS = 7;
const SECRET = /^aes256:[A-Za-z0-9+/]{43}=$/;
const SECRETS_MAX = 2;
const NONCE_BYTES = 12;
const DATA_KEY_BYTES = 32;

/** Finds the secrets of keys and objects. */
export class Secrets {
  readonly #rules: readonly SecretRule[];
  readonly #opened = new Map<SecretSource, Promise<Secret>>();

  /**
   * Of several rules for a key, that of the longest prefix encrypts, and the secrets of all of them decrypt: a rule for
   * a longer prefix must not take from readers what was stored before it. Throws CONFIG_INVALID.
   */
  constructor(rules: readonly SecretRule[] = []) {
    if (!Array.isArray(rules)) throw malformed(HAS_MESSAGES && "is not a list");
    for (const rule of rules as readonly (Partial<SecretRule> | null)[]) {
      const { prefix, secrets } = rule ?? {};
      const isList = Array.isArray(secrets) && secrets.length > 0 && secrets.length <= SECRETS_MAX;
      if (typeof prefix !== "string" || !isList)
        throw malformed(HAS_MESSAGES && 'has an entry that is not {"prefix", "secrets"} with one or two secrets');
      if (secrets.some((secret) => typeof secret !== "function" && !isText(secret, SECRET)))
        throw malformed(HAS_MESSAGES && "has a secret that is not aes256: and base64 of 32 bytes");
    }
    this.#rules = rules;
  }

  /** The secret that encrypts new objects of a key; undefined where none does. Rejects with CONFIG_INVALID. */
  async forWriting(key: string): Promise<Secret | undefined> {
    const [source] = this.#rulesOf(key)[0]?.secrets ?? [];
    return source === undefined ? undefined : this.#open(source);
  }

  /**
   * The data key of an encrypted object: 32 bytes.
   *
   * @throws SECRET_MISSING, SECRET_WRONG, DECRYPTION_FAILED, MANIFEST_NEWER, MANIFEST_INVALID or CONFIG_INVALID.
   */
  async dataKeyOf(manifest: EncryptedManifest): Promise<Uint8Array> {
    const { secret: id, dataKey } = encryptionOf(manifest);
    const { key } = manifest;
    const ids: string[] = [];
    // One after the other, so that no secret is asked for that is not needed.
    for (const source of this.#rulesOf(key).flatMap(({ secrets }) => secrets)) {
      const secret = await this.#open(source);
      if (secret.id === id) return openDataKey(dataKey, secret, manifest);
      ids.push(secret.id);
    }
    if (ids.length === 0) {
      throw new AgaroseError(
        "SECRET_MISSING",
        HAS_MESSAGES &&
          `${JSON.stringify(key)} is encrypted by the secret ${id}, and 0 secrets are configured for it: add it`,
        { key, secret: id },
      );
    }
    throw new AgaroseError(
      "SECRET_WRONG",
      HAS_MESSAGES &&
        `${JSON.stringify(key)} is encrypted by the secret ${id}, and ${ids.join(" and ")} is configured for it: ` +
          "if it was replaced, read the object again; else add that secret",
      { key, secret: id, configured: ids },
    );
  }

  /** The rules of a key, that of the longest prefix first. */
  #rulesOf(key: string): readonly SecretRule[] {
    const fitting = this.#rules.filter(({ prefix }) => key.startsWith(prefix));
    return fitting.toSorted((a, b) => b.prefix.length - a.prefix.length);
  }

  #open(source: SecretSource): Promise<Secret> {
    let opened = this.#opened.get(source);
    if (!opened) {
      opened = (typeof source === "string" ? Promise.resolve(source) : source()).then(openSecret);
      this.#opened.set(source, opened);
      // A failed read is repeated.
      opened.catch(() => this.#opened.delete(source));
    }
    return opened;
  }
}

/** The secret that is written `aes256:` and base64 of 32 bytes. Rejects with CONFIG_INVALID. */
export async function openSecret(text: string): Promise<Secret> {
  if (!SECRET.test(text)) throw malformed(HAS_MESSAGES && "has a secret that is not aes256: and base64 of 32 bytes");
  const raw = fromBase64(text.slice(PREFIX_CHARACTERS));
  const id = toHex(await systemSha256(concat([new TextEncoder().encode("agarose-secret/1\n"), raw]))).slice(0, 16);
  return { id, key: await importAes(raw) };
}

/** `secret` and `dataKey` of a manifest's `encryption`. `nonce` is 12 random bytes. */
export async function sealDataKey(
  dataKey: Uint8Array,
  { id, key }: Secret,
  owner: CellOwner,
  nonce: Uint8Array,
): Promise<Pick<Encryption, "secret" | "dataKey">> {
  const encrypted = await encryptAes(key, nonce, boundText("data-key", owner), dataKey);
  return { secret: id, dataKey: toBase64(concat([nonce, encrypted])) };
}

async function openDataKey(text: string, { key }: Secret, owner: EncryptedManifest): Promise<Uint8Array> {
  const sealed = fromBase64(text);
  const nonce = sealed.subarray(0, NONCE_BYTES);
  try {
    const dataKey = await decryptAes(key, nonce, boundText("data-key", owner), sealed.subarray(NONCE_BYTES));
    if (dataKey.length === DATA_KEY_BYTES) return dataKey;
  } catch {
    // Below.
  }
  throw decryptionFailed(owner, HAS_MESSAGES && "its data key");
}

function malformed(problem: string | false): AgaroseError {
  return new AgaroseError("CONFIG_INVALID", HAS_MESSAGES && `encryption ${problem}`, { field: "encryption" });
}
