/** The content of stored objects, which may be encrypted, compressed, or both: compressed first, then encrypted. */
import { plainBytes, storedRange } from "../encryption/cells.ts";
import { openEncrypted } from "../encryption/open.ts";
import { HAS_ENCRYPTION } from "../features.ts";
import type { Manifest } from "../format/manifest/manifest.ts";
import type { ByteRange } from "../http/range.ts";
import { inflate } from "./inflate.ts";
import type { OpenedObject } from "./opened-object.ts";
import { compressedRange } from "./segments.ts";

/** The fields of a manifest that locate its content in the stored bytes. */
type Shape = Pick<Manifest, "bytes" | "encryption" | "gzip">;

/**
 * Opens an object; undefined where its stored bytes are its content.
 *
 * @param dataKey resolves to the 32 bytes of the data key of an encrypted object. False for a build without
 *   encryption, which refuses such objects before.
 * @throws as `openEncrypted` and `dataKey` do.
 */
export async function openContent(
  manifest: Manifest,
  dataKey: false | ((manifest: Manifest) => Promise<Uint8Array>),
): Promise<OpenedObject | undefined> {
  const cells =
    HAS_ENCRYPTION && dataKey && manifest.encryption
      ? await openEncrypted(manifest, await dataKey(manifest))
      : undefined;
  const { gzip, ...shown } = cells?.shown ?? manifest;
  if (!gzip) return cells;
  const compressed = { key: manifest.key, gzip };
  return {
    shown: { ...shown, bytes: gzip.bytes, sha256: gzip.sha256 ?? shown.sha256 },
    stored: (range) => storedRangeOf(manifest, range),
    content: (range, body) => inflate(compressed, range, cells?.content(compressedRange(gzip, range), body) ?? body),
  };
}

/** The length of the content, which takes no secret. */
export function shownBytes({ bytes, encryption, gzip }: Shape): number {
  return gzip?.bytes ?? (encryption ? plainBytes(bytes) : bytes);
}

/** The stored bytes that a range of the content needs. */
export function storedRangeOf(manifest: Shape, range: ByteRange): ByteRange {
  const { encryption, gzip } = manifest;
  const inner = gzip ? compressedRange(gzip, range) : range;
  return HAS_ENCRYPTION && encryption ? storedRange(inner, manifest) : inner;
}
