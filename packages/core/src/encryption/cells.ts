/**
 * Cells: how the bytes of an encrypted object are cut (docs/reference/format.md, "Encryption").
 *
 * The plain bytes are encrypted cell by cell, and the cells are what is cut into stripes and coded. So a range of plain
 * bytes is a range of whole cells, whatever the code is, and no cell can be moved, repeated or cut off.
 */
import type { ByteRange } from "../http/range.ts";
import { encodeKey } from "../format/key.ts";

/** Stored bytes of a cell; the last one of an object may be shorter. */
export const CELL_BYTES = 64 * 1024;
/** Of them, the tag of AES-GCM. */
export const TAG_BYTES = 16;
const PLAIN_BYTES = CELL_BYTES - TAG_BYTES;
const NONCE_BYTES = 12;

/** The values that an object's cells are bound to: its key, and the length of all cells. */
export interface CellOwner {
  readonly key: string;
  /** Stored bytes: `bytes` of the manifest. */
  readonly bytes: number;
}

/** The stored length of an object of `plain` bytes. An empty one has a cell too, which only the secret makes. */
export function encryptedBytes(plain: number): number {
  return plain + TAG_BYTES * Math.max(1, Math.ceil(plain / PLAIN_BYTES));
}

/** The length of what `stored` bytes of cells decrypt to. */
export function plainBytes(stored: number): number {
  return stored - TAG_BYTES * Math.ceil(stored / CELL_BYTES);
}

/** Whether cells can have this length together. */
export function isEncryptedLength(stored: number): boolean {
  return stored >= TAG_BYTES && encryptedBytes(plainBytes(stored)) === stored;
}

/** The stored bytes that a range of plain bytes needs: whole cells, at least one. */
export function storedRange({ start, end }: ByteRange, { bytes }: Pick<CellOwner, "bytes">): ByteRange {
  const first = Math.floor(start / PLAIN_BYTES) * CELL_BYTES;
  return { start: first, end: Math.min(Math.ceil(Math.max(end, start + 1) / PLAIN_BYTES) * CELL_BYTES, bytes) };
}

/** The plain bytes that stored bytes from `start` on begin with. `start` is where a cell begins. */
export function plainStart(start: number): number {
  return (start / CELL_BYTES) * PLAIN_BYTES;
}

/** Encrypts and decrypts the cells of one object. A data key may encrypt one object only: nonces are numbers. */
export class CellCipher {
  readonly #key: Promise<CryptoKey>;
  readonly #owner: CellOwner;

  /** @param dataKey 32 bytes. */
  constructor(dataKey: Uint8Array, owner: CellOwner) {
    this.#key = importAes(dataKey);
    this.#key.catch(() => {});
    this.#owner = owner;
  }

  async encrypt(index: number, plain: Uint8Array): Promise<Uint8Array> {
    return encryptAes(await this.#key, this.#cellNonce(index), boundText("cell", this.#owner), plain);
  }

  /** The plain bytes of cell `index`. Rejects with an OperationError when it is not that cell of this object. */
  async decrypt(index: number, cell: Uint8Array): Promise<Uint8Array> {
    return decryptAes(await this.#key, this.#cellNonce(index), boundText("cell", this.#owner), cell);
  }

  /** Encrypts the properties of the content. May be called only once for a data key. */
  async encryptProperties(text: Uint8Array): Promise<Uint8Array> {
    return encryptAes(await this.#key, nonceOf(0, PROPERTIES), boundText("properties", this.#owner), text);
  }

  /** Inverse of `encryptProperties`. Rejects as `decrypt` does. */
  async decryptProperties(text: Uint8Array): Promise<Uint8Array> {
    return decryptAes(await this.#key, nonceOf(0, PROPERTIES), boundText("properties", this.#owner), text);
  }

  #cellNonce(index: number): Uint8Array<ArrayBuffer> {
    return nonceOf(index, index * CELL_BYTES + CELL_BYTES < this.#owner.bytes ? INNER : LAST);
  }
}

/** The purpose of a nonce. */
const INNER = 0;
const LAST = 1;
const PROPERTIES = 2;

function nonceOf(index: number, use: number): Uint8Array<ArrayBuffer> {
  const nonce = new Uint8Array(NONCE_BYTES);
  const view = new DataView(nonce.buffer);
  view.setBigUint64(0, BigInt(index), true);
  view.setUint32(8, use, true);
  return nonce;
}

/** Authenticated data in addition to the bytes, so that nothing decrypts under another key or with another length. */
export function boundText(what: "cell" | "properties" | "data-key", { key, bytes }: CellOwner): Uint8Array {
  return new TextEncoder().encode(`agarose-${what}/1\n${encodeKey(key)}\n${bytes}\n`);
}

/** A key of AES-256-GCM from 32 bytes. */
export function importAes(raw: Uint8Array): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", raw as Uint8Array<ArrayBuffer>, "AES-GCM", false, ["encrypt", "decrypt"]);
}

/** The encrypted bytes, and the tag after them. */
export async function encryptAes(
  key: CryptoKey,
  nonce: Uint8Array,
  bound: Uint8Array,
  plain: Uint8Array,
): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.encrypt(aes(nonce, bound), key, plain as Uint8Array<ArrayBuffer>));
}

/** Inverse of `encryptAes`. Rejects with an OperationError when anything differs. */
export async function decryptAes(
  key: CryptoKey,
  nonce: Uint8Array,
  bound: Uint8Array,
  encrypted: Uint8Array,
): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.decrypt(aes(nonce, bound), key, encrypted as Uint8Array<ArrayBuffer>));
}

function aes(nonce: Uint8Array, bound: Uint8Array) {
  return { name: "AES-GCM", iv: nonce as Uint8Array<ArrayBuffer>, additionalData: bound as Uint8Array<ArrayBuffer> };
}
