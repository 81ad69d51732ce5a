/** Writes encrypted objects: the `encryption` of a manifest. Cells are encrypted by `CellCipher`. */
import type { Encryption, Manifest } from "../format/manifest/manifest.ts";
import { toBase64 } from "../format/text.ts";
import { type CellCipher, type CellOwner } from "./cells.ts";
import { CIPHER } from "./encryption.ts";
import { sealDataKey, type Secret } from "./secrets.ts";

/** The part that only readers with the secret can open. */
export type Properties = Pick<Manifest, "contentType" | "headers" | "sha256">;

/** The properties are padded to a multiple of it, so that their length says little. */
const PADDED_BYTES = 256;

/** The content that `sealEncryption` seals, and its secret. */
export interface SealInput {
  readonly owner: CellOwner;
  /** 32 random bytes of this object only. */
  readonly dataKey: Uint8Array;
  /** The cipher of `dataKey`. */
  readonly cipher: CellCipher;
  readonly secret: Secret;
  /** 12 random bytes. */
  readonly nonce: Uint8Array;
  /** Of the plain content. */
  readonly properties: Properties;
}

/** The `encryption` of a manifest, once for a data key. */
export async function sealEncryption(input: SealInput): Promise<Encryption> {
  const { owner, dataKey, cipher, secret, nonce, properties } = input;
  const { contentType, headers, sha256 } = properties;
  const text = new TextEncoder().encode(JSON.stringify({ contentType, headers, sha256 }));
  const padded = new Uint8Array(Math.ceil(text.length / PADDED_BYTES) * PADDED_BYTES).fill(0x20);
  padded.set(text);
  const encrypted = await cipher.encryptProperties(padded);
  const sealed = await sealDataKey(dataKey, secret, owner, nonce);
  return { cipher: CIPHER, ...sealed, properties: toBase64(encrypted) };
}
