/** The bytes of a stored manifest: their limit and their CRC-32. */
import { AgaroseError, HAS_MESSAGES } from "../../errors.ts";
import { crc32 } from "../crc32.ts";
import { MANIFEST_BYTES_MAX, recordJson, type ManifestRecord } from "./manifest.ts";

/**
 * The bytes of a manifest as they are stored: JSON whose last field is the CRC-32 of all bytes before it, so that a
 * damaged copy is known as one, and another region's is used. Throws MANIFEST_TOO_LARGE.
 */
export function encodeManifest(record: ManifestRecord): Uint8Array {
  const body = JSON.stringify(recordJson(record)).slice(0, -1);
  const bytes = new TextEncoder().encode(`${body},"crc32":"${checksum(new TextEncoder().encode(body))}"}`);
  refuseTooLarge(bytes.length);
  return bytes;
}

/** Refuses a manifest of more than MANIFEST_BYTES_MAX bytes before it is held in memory. */
export function refuseTooLarge(bytes: number): void {
  if (bytes <= MANIFEST_BYTES_MAX) return;
  throw new AgaroseError(
    "MANIFEST_TOO_LARGE",
    HAS_MESSAGES &&
      `manifest is ${bytes} bytes, at most ${MANIFEST_BYTES_MAX} are allowed: put the object with fewer or shorter headers`,
    { bytes, max: MANIFEST_BYTES_MAX },
  );
}

/** A CRC-32 as eight hex digits. */
export function checksum(bytes: Uint8Array): string {
  return crc32(bytes).toString(16).padStart(8, "0");
}
