/** Whose manifests the command line trusts, and the key by which it signs its own. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign as signBytes, type KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import { AgaroseError } from "@agarose/core";
import {
  keyIdOf,
  rawPublicKey,
  trustOf as trustOfSettings,
  type SignatureCheck,
  type Signer,
  DEVELOPMENT_KEY,
} from "@agarose/core/format";
import type { Config } from "./config.ts";
import { runUserCommand } from "./user-command.ts";

/** The prefix of the 32 bytes in a PKCS#8 key of Ed25519 (RFC 8410). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");
const RAW_BYTES = 32;

/** Whose manifests count: those of the public keys, or with `unsigned` everyone's. Throws CONFIG_INVALID. */
export function trustOf(config: Pick<Config, "publicKeys" | "unsigned" | "regions">): SignatureCheck {
  return trustOfSettings(
    config,
    config.regions.map(({ endpoint }) => ({ url: endpoint })),
  );
}

/**
 * The signer that the configuration names; undefined in unsigned mode. Keys are read at the first signature. Buckets of
 * this machine alone need no key: their manifests are signed by the development key, which local worlds trust.
 */
export function signerOf({ signing, publicKeys, unsigned }: Partial<Config>): Signer | undefined {
  if (unsigned) return undefined;
  if (!publicKeys) return keySigner(async () => parsePrivateKey(DEVELOPMENT_KEY.privateKey));
  if (!signing) {
    return () => {
      const message =
        "a manifest is to be signed, and the configuration has `publicKeys` without `signing`: name the private key there";
      return Promise.reject(new AgaroseError("CONFIG_INVALID", message, { field: "signing" }));
    };
  }
  return signing.command ? commandSigner(signing.command, publicKeys) : keySigner(() => readPrivateKey(signing));
}

/** The name of the key that signs, as signatures have it; undefined where the configuration names none. */
export async function signingKeyId(config: Pick<Config, "signing" | "publicKeys">): Promise<string | undefined> {
  const sign = config.publicKeys && config.signing && signerOf(config);
  return (await sign?.(new Uint8Array()))?.keyId;
}

function keySigner(read: () => Promise<KeyObject>): Signer {
  const open = async (): Promise<{ privateKey: KeyObject; keyId: string }> => {
    const privateKey = await read();
    return { privateKey, keyId: await keyIdOf(rawPublicKey(publicKeyOf(privateKey))) };
  };
  let opened: ReturnType<typeof open> | undefined;
  return async (signed) => {
    // A gateway continues: a key that was not there yet is reread by the next signature.
    opened ??= open().catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    const { privateKey, keyId } = await opened;
    return { keyId, value: signBytes(null, signed, privateKey).toString("base64") };
  };
}

/** The public key of the configured private key, as `publicKeys` has it. Throws CONFIG_INVALID. */
export async function configuredPublicKey(signing: NonNullable<Config["signing"]>): Promise<string> {
  return publicKeyOf(await readPrivateKey(signing));
}

/** A new key pair: the private key as PKCS#8 PEM, the public key as `publicKeys` has it. */
export function newKeyPair(): { readonly privateKey: string; readonly publicKey: string } {
  const { privateKey } = generateKeyPairSync("ed25519");
  return {
    privateKey: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
    publicKey: publicKeyOf(privateKey),
  };
}

function publicKeyOf(privateKey: KeyObject): string {
  const spki = createPublicKey(privateKey).export({ type: "spki", format: "der" });
  return `ed25519:${spki.subarray(-RAW_BYTES).toString("base64")}`;
}

async function readPrivateKey({ keyFile, environment }: NonNullable<Config["signing"]>): Promise<KeyObject> {
  const where = keyFile === undefined ? `the variable ${environment}` : keyFile;
  try {
    const text = keyFile === undefined ? (process.env[environment ?? ""] ?? "") : await readFile(keyFile, "utf8");
    return parsePrivateKey(text);
  } catch (error) {
    throw new AgaroseError(
      "CONFIG_INVALID",
      `${where} holds no Ed25519 key (${(error as Error).message}): make one with \`agarose keys new\``,
      {},
      error,
    );
  }
}

function parsePrivateKey(text: string): KeyObject {
  const key = text.includes("BEGIN")
    ? createPrivateKey(text)
    : createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seedOf(text)]), format: "der", type: "pkcs8" });
  if (key.asymmetricKeyType === "ed25519") return key;
  throw new Error(`it holds a key of type ${key.asymmetricKeyType}`);
}

function seedOf(text: string): Buffer {
  const seed = Buffer.from(text.trim(), "base64");
  if (seed.length === RAW_BYTES) return seed;
  throw new Error(`${seed.length} bytes in base64, ${RAW_BYTES} are expected`);
}

/** Signs by a program, which gets the bytes on stdin and prints the base64 of the signature by the first public key. */
function commandSigner([program = "", ...args]: readonly string[], publicKeys: readonly string[]): Signer {
  return async (signed) => {
    const output = await runUserCommand([program, ...args], { input: signed }).catch((error: unknown) => {
      if ((error as Error).name === "AbortError") throw error;
      const message = `the signing command ${program} failed (${(error as Error).message}): check \`signing\``;
      throw new AgaroseError("CONFIG_INVALID", message, { program }, error);
    });
    return { keyId: await keyIdOf(rawPublicKey(publicKeys[0] ?? "")), value: output.trim() };
  };
}
