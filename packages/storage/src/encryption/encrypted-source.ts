/** Encrypts what a put stores: the passes of the put read cells instead of the file, and need not know it. */
import { createHash, randomBytes } from "node:crypto";
import {
  CELL_BYTES,
  CellCipher,
  encryptedBytes,
  sealEncryption,
  TAG_BYTES,
  type Properties,
  type Secret,
} from "@agarose/core/encryption";
import type { Encryption } from "@agarose/core/format";
import { hashFile, type FileHash, type SourceReader, hasChanged } from "../upload/file-source.ts";

/** The bytes that are stored in place of a file. */
export interface EncryptedSource {
  readonly file: SourceReader;
  /** Length and SHA-256 of the cells. */
  readonly hash: FileHash;
  readonly encryption: Encryption;
}

const PLAIN_BYTES = CELL_BYTES - TAG_BYTES;
const DATA_KEY_BYTES = 32;
const NONCE_BYTES = 12;

/**
 * Encrypts `file` by a new data key, and hashes the cells. `plain` is what a pass over the file has found. The SHA-256
 * of the properties is that of the content, which `file` may have compressed.
 *
 * @throws FILE_UNREADABLE when the file is not that file any more, or the reason of an aborted `signal`.
 */
export async function encryptSource(
  file: SourceReader,
  plain: FileHash,
  { key, contentType, headers, sha256 }: Properties & { readonly key: string },
  secret: Secret,
  signal: AbortSignal,
): Promise<EncryptedSource> {
  const owner = { key, bytes: encryptedBytes(plain.bytes) };
  const dataKey = randomBytes(DATA_KEY_BYTES);
  const cipher = new CellCipher(dataKey, owner);
  const reader = encryptingReader(file, plain.bytes, cipher, key);
  const hash = await hashFile(reader, signal, () => {});
  if (reader.plainSha256() !== plain.sha256) throw hasChanged(key);
  const properties = { contentType, headers, sha256 };
  const nonce = randomBytes(NONCE_BYTES);
  return {
    file: reader,
    hash,
    encryption: await sealEncryption({ owner, dataKey, cipher, secret, nonce, properties }),
  };
}

/**
 * Reads the cells of a file. The nonce of a cell is its number, so two contents of one cell would give away both. The
 * first pass sends nothing and notes the tag of each cell. No later pass gets a cell with another one, be it to send
 * what failed again, what a region has lost, or what is inline.
 */
function encryptingReader(file: SourceReader, plainBytes: number, cipher: CellCipher, key: string) {
  const bytes = encryptedBytes(plainBytes);
  const hash = createHash("sha256");
  const tags = Buffer.alloc(Math.ceil(bytes / CELL_BYTES) * TAG_BYTES);
  let hashedBytes = 0;
  /** How many cells have a tag. */
  let tagged = 0;

  /** A tag is as good as a hash here: who does not have the data key cannot find another content with the same one. */
  const checkTag = (cell: number, tag: Uint8Array): void => {
    const noted = tags.subarray(cell * TAG_BYTES, (cell + 1) * TAG_BYTES);
    if (cell >= tagged) {
      noted.set(tag);
      tagged = cell + 1;
    } else if (!noted.equals(tag)) throw hasChanged(key);
  };

  /** The cells `first` to `end` - 1. */
  const cellsBetween = async (first: number, end: number): Promise<Uint8Array[]> => {
    const start = first * PLAIN_BYTES;
    const plain = new Uint8Array(Math.min(end * PLAIN_BYTES, plainBytes) - start);
    if ((await file.read(plain, start)) < plain.length) throw hasChanged(key);
    // Later passes read again what the first one has hashed.
    const unhashed = plain.subarray(Math.max(0, hashedBytes - start));
    if (unhashed.length > 0) hash.update(unhashed);
    hashedBytes += unhashed.length;
    const encrypted: Promise<Uint8Array>[] = [];
    for (let cell = first; cell < end; cell++) {
      const from = (cell - first) * PLAIN_BYTES;
      encrypted.push(cipher.encrypt(cell, plain.subarray(from, from + PLAIN_BYTES)));
    }
    const cells = await Promise.all(encrypted);
    for (const [i, cell] of cells.entries()) checkTag(first + i, cell.subarray(-TAG_BYTES));
    return cells;
  };

  return {
    async read(target: Uint8Array, position: number): Promise<number> {
      const end = Math.min(position + target.length, bytes);
      if (position >= end) return 0;
      const first = Math.floor(position / CELL_BYTES);
      const cells = await cellsBetween(first, Math.ceil(end / CELL_BYTES));
      for (const [i, cell] of cells.entries()) {
        const start = (first + i) * CELL_BYTES;
        const wanted = cell.subarray(Math.max(0, position - start), end - start);
        target.set(wanted, Math.max(0, start - position));
      }
      return end - position;
    },
    close: () => file.close(),
    /** Of the plain bytes, after the first pass. */
    plainSha256: () => hash.digest("hex"),
  };
}
