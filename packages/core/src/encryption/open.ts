/** Reads encrypted objects: what a reader shows of them, and their bytes. */
import type { OpenedObject } from "../content/opened-object.ts";
import { HAS_MESSAGES } from "../errors.ts";
import type { Manifest } from "../format/manifest/manifest.ts";
import { checkHeaders } from "../format/manifest/check.ts";
import { isHeaderValue } from "../format/manifest/fields.ts";
import { concat } from "../format/hash-tree.ts";
import { decodeUtf8 } from "../format/shape.ts";
import { fromBase64 } from "../format/text.ts";
import type { ByteRange } from "../http/range.ts";
import { CELL_BYTES, CellCipher, plainBytes, plainStart, storedRange } from "./cells.ts";
import { decryptionFailed, encryptionOf } from "./encryption.ts";
import type { Properties } from "./seal.ts";

/**
 * Opens an encrypted object by its data key of 32 bytes. Of a compressed one, the length is that of its segments.
 *
 * @throws DECRYPTION_FAILED when it is not the data key of this object, MANIFEST_NEWER or MANIFEST_INVALID.
 */
export async function openEncrypted(manifest: Manifest, dataKey: Uint8Array): Promise<OpenedObject> {
  const { properties } = encryptionOf(manifest);
  const cipher = new CellCipher(dataKey, manifest);
  const text = await cipher.decryptProperties(fromBase64(properties)).catch(() => {
    throw decryptionFailed(manifest, HAS_MESSAGES && "what its manifest says of it");
  });
  const { contentType, headers, sha256 } = JSON.parse(decodeUtf8(text)) as Properties;
  checkHeaders(headers);
  if (!isHeaderValue("content-type", contentType)) throw decryptionFailed(manifest, HAS_MESSAGES && "its type");
  const { encryption: _encryption, ...others } = manifest;
  return {
    shown: { ...others, bytes: plainBytes(manifest.bytes), contentType, headers, sha256 },
    stored: (range) => storedRange(range, manifest),
    content: (range, body) => body.pipeThrough(decryption(cipher, manifest, range)),
  };
}

/** Decrypts cells, and passes on what is of `range`. */
function decryption(cipher: CellCipher, manifest: Manifest, range: ByteRange): TransformStream<Uint8Array, Uint8Array> {
  const { start, end } = storedRange(range, manifest);
  let at = start;
  let parts: Uint8Array[] = [];
  let length = 0;
  type Controller = TransformStreamDefaultController<Uint8Array>;
  const decryptCell = async (cell: Uint8Array, cellStart: number): Promise<Uint8Array> => {
    const plain = await cipher.decrypt(cellStart / CELL_BYTES, cell).catch(() => {
      throw decryptionFailed(manifest, HAS_MESSAGES && `what is stored from byte ${cellStart} on`);
    });
    const from = plainStart(cellStart);
    return plain.subarray(Math.max(0, range.start - from), Math.max(0, range.end - from));
  };
  const pass = async (bytes: Uint8Array, controller: Controller): Promise<void> => {
    const cells: Promise<Uint8Array>[] = [];
    for (let from = 0; from < bytes.length; from += CELL_BYTES)
      cells.push(decryptCell(bytes.subarray(from, from + CELL_BYTES), at + from));
    at += bytes.length;
    for (const plain of await Promise.all(cells)) if (plain.length > 0) controller.enqueue(plain);
  };
  return new TransformStream<Uint8Array, Uint8Array>({
    async transform(part, controller) {
      parts.push(part);
      length += part.length;
      if (length < CELL_BYTES) return;
      const bytes = concat(parts);
      const whole = length - (length % CELL_BYTES);
      parts = [bytes.subarray(whole)];
      length -= whole;
      await pass(bytes.subarray(0, whole), controller);
    },
    // The last cell of an object may be shorter.
    async flush(controller) {
      await pass(concat(parts), controller);
      if (at !== end) throw decryptionFailed(manifest, HAS_MESSAGES && `${end - at} bytes are missing, and its end`);
    },
  });
}
