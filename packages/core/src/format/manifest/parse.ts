/**
 * Reads manifests. `parseManifest` is the only way in from bytes: whatever it returns is consistent, of the content
 * that its version names, and by a publisher that the reader trusts, so no reader checks again.
 */
import { HAS_MESSAGES } from "../../errors.ts";
import { HAS_ENCRYPTION } from "../../features.ts";
import { decodeUtf8 } from "../shape.ts";
import { fromBase64 } from "../text.ts";
import {
  checkCode,
  checkGzip,
  checkHashes,
  checkHashesSha256,
  checkHeaders,
  checkPlacement,
  checkVersion,
} from "./check.ts";
import { checksum, refuseTooLarge } from "./encode.ts";
import { invalid, newer } from "./errors.ts";
import { checkFields, FIELDS, GENERATION_FIELDS } from "./fields.ts";
import { signedBytes } from "./identity.ts";
import { FORMAT_VERSION, isTombstone, type ExpectedManifest, type Manifest, type ManifestRecord } from "./manifest.ts";

/**
 * Parses and checks what a region holds under the name of a key's manifest.
 *
 * @throws MANIFEST_TOO_LARGE, MANIFEST_NEWER, MANIFEST_INVALID, MANIFEST_UNTRUSTED, CODE_INVALID, REGION_UNKNOWN or
 *   SIGNATURE_UNSUPPORTED.
 */
export async function parseManifest(input: Uint8Array | string, expected: ExpectedManifest): Promise<ManifestRecord> {
  refuseTooLarge(input.length);
  const bytes = typeof input === "string" ? new TextEncoder().encode(input) : input;
  checkTrailer(bytes);
  const { crc32: _crc32, ...fields } = parseJson(bytes);
  return checkRecord(fields, expected);
}

/** No white space that a program puts behind a manifest is longer. */
const TRAILER_BYTES_MAX = 1024;

/** Refuses bytes that do not end in their own CRC-32. */
function checkTrailer(bytes: Uint8Array): void {
  // Text that is not ASCII does not match either.
  const end = new TextDecoder("latin1").decode(bytes.subarray(-TRAILER_BYTES_MAX));
  const [trailer, expected] = /,"crc32":"([0-9a-f]{8})"\}\s*$/.exec(end) ?? [];
  const actual = trailer && checksum(bytes.subarray(0, bytes.length - trailer.length));
  if (actual && actual === expected) return;
  throw invalid(
    HAS_MESSAGES &&
      `is damaged or truncated (${bytes.length} bytes): its CRC-32 is ${actual ?? "unknown"}, ${expected ?? "none"} is written in it`,
    { expected, actual },
  );
}

function parseJson(bytes: Uint8Array): { readonly crc32?: unknown; inline?: unknown } {
  try {
    const fields = JSON.parse(decodeUtf8(bytes)) as ReturnType<typeof parseJson>;
    if (typeof fields.inline === "string") fields.inline = fromBase64(fields.inline);
    return fields;
  } catch (error) {
    throw invalid(
      HAS_MESSAGES && `is not JSON in UTF-8, or its inline object is not base64 (${bytes.length} bytes)`,
      {},
      error,
    );
  }
}

/**
 * `parseManifest` for one that is already parsed, as in a plan, and has an inline object as bytes. A tombstone is
 * MANIFEST_INVALID there.
 */
export async function checkManifest(json: unknown, expected: ExpectedManifest): Promise<Manifest> {
  const record = await checkRecord(json, expected);
  if (isTombstone(record)) throw invalid(HAS_MESSAGES && "is of an object that was removed");
  return record;
}

async function checkRecord(json: unknown, expected: ExpectedManifest): Promise<ManifestRecord> {
  await checkFormat(json, expected);
  const record = json as ManifestRecord;
  checkFields(record, isTombstone(record) ? GENERATION_FIELDS : FIELDS);
  // So it is a key: the caller has checked the one that it asked for.
  if (record.key !== expected.key) {
    throw invalid(
      HAS_MESSAGES && `has the key ${JSON.stringify(record.key)}, ${JSON.stringify(expected.key)} was asked for`,
      {
        key: record.key,
      },
    );
  }
  if (!isTombstone(record)) {
    await checkRequired(record, expected);
    checkCode(record);
    checkGzip(record);
    checkPlacement(record, expected.regions);
    checkHashes(record);
    await checkHashesSha256(record, expected.sha256);
    checkHeaders(record.headers);
    await checkVersion(record, expected.sha256);
  }
  await expected.trust(coveredBytes(record), record.signature);
  return record;
}

/** `signedBytes` of what anybody may have made up. */
function coveredBytes(record: ManifestRecord): Uint8Array {
  try {
    return signedBytes(record);
  } catch (error) {
    throw invalid(HAS_MESSAGES && "is nested too deeply", {}, error);
  }
}

async function checkFormat(json: unknown, expected: ExpectedManifest): Promise<void> {
  const format = (json as { agarose?: unknown } | null)?.agarose;
  if (format === FORMAT_VERSION) return;
  if (typeof format === "number" && format > FORMAT_VERSION) {
    await refuseNewer(json as Manifest, expected, HAS_MESSAGES && `format ${format}`, { format });
  }
  throw invalid(HAS_MESSAGES && `has format ${JSON.stringify(format)}, ${FORMAT_VERSION} is expected`, { format });
}

/** Features that this program knows of those that a manifest can require. */
export const FEATURES: ReadonlySet<string> = new Set([
  "inline",
  "gzip",
  "pages",
  ...(HAS_ENCRYPTION ? ["encryption"] : []),
]);

async function checkRequired(manifest: Manifest, expected: ExpectedManifest): Promise<void> {
  const features = manifest.requires?.filter((feature) => !FEATURES.has(feature)) ?? [];
  if (features.length > 0) {
    await refuseNewer(manifest, expected, HAS_MESSAGES && `the features ${features.join(", ")}`, { features });
  }
}

/** MANIFEST_NEWER, if a publisher has signed it for this key: who cannot sign must not make readers give up. */
async function refuseNewer(
  manifest: Manifest,
  { key, trust }: ExpectedManifest,
  ...reason: Parameters<typeof newer>
): Promise<never> {
  await trust(coveredBytes({ ...manifest, key }), manifest.signature);
  throw newer(...reason);
}
