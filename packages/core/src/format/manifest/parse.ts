/**
 * Reads manifests. `parseManifest` is the only way in from bytes: whatever it returns is consistent, of the content
 * that its version names, and by a publisher that the reader trusts, so no reader checks again.
 */
import { HAS_MESSAGES } from "../../errors.ts";
import { HAS_ENCRYPTION } from "../../features.ts";
import { decodeUtf8 } from "../shape.ts";
import { checkCode, checkHashes, checkHashesSha256, checkHeaders, checkPlacement, checkVersion } from "./check.ts";
import { checksum, refuseTooLarge } from "./encode.ts";
import { invalid, newer } from "./errors.ts";
import { checkExcerpt, type Excerpt } from "./excerpt.ts";
import { checkFields, FIELDS, GENERATION_FIELDS } from "./fields.ts";
import { fromFormat1 } from "./format-1.ts";
import { signedBytes } from "./identity.ts";
import { FORMAT_VERSION, isTombstone, type ExpectedManifest, type Manifest, type ManifestRecord } from "./manifest.ts";

/**
 * Parses and checks what a region holds under the name of a key's manifest. Format 1 is read too: it becomes a manifest
 * of generation 0 whose `upload` is its version of format 1.
 *
 * @throws MANIFEST_TOO_LARGE, MANIFEST_NEWER, MANIFEST_INVALID, MANIFEST_UNTRUSTED, CODE_INVALID, REGION_UNKNOWN or
 *   SIGNATURE_UNSUPPORTED.
 */
export async function parseManifest(input: Uint8Array | string, expected: ExpectedManifest): Promise<ManifestRecord> {
  refuseTooLarge(input.length);
  let text: string;
  let json: { agarose?: unknown; crc32?: unknown } | null;
  try {
    text = typeof input === "string" ? input : decodeUtf8(input);
    json = JSON.parse(text) as typeof json;
  } catch (error) {
    throw invalid(HAS_MESSAGES && `is not JSON in UTF-8 (${input.length} bytes; it may be truncated)`, {}, error);
  }
  const [trailer, expectedCrc] = /,"crc32":"([0-9a-f]{8})"\}\s*$/.exec(text) ?? [];
  const actualCrc = trailer && checksum(text.slice(0, -trailer.length));
  if (actualCrc !== expectedCrc || !actualCrc) {
    throw invalid(
      HAS_MESSAGES && `is damaged: its CRC-32 is ${actualCrc ?? "unknown"}, ${expectedCrc ?? "none"} is written in it`,
      {
        expected: expectedCrc,
        actual: actualCrc,
      },
    );
  }
  const { crc32: _crc32, ...fields } = json!;
  return checkRecord(fields, expected);
}

/**
 * `parseManifest` for a manifest that is already parsed, as in a plan. A tombstone is MANIFEST_INVALID there.
 *
 * @param excerpt where it has the hashes of some stripes: the manifest that is returned has `""` for the others.
 */
export async function checkManifest(json: unknown, expected: ExpectedManifest, excerpt?: Excerpt): Promise<Manifest> {
  const record = await checkRecord(json, expected, excerpt);
  if (isTombstone(record)) throw invalid(HAS_MESSAGES && "is of an object that was removed");
  return record;
}

async function checkRecord(json: unknown, expected: ExpectedManifest, excerpt?: Excerpt): Promise<ManifestRecord> {
  await checkFormat(json, expected);
  let record =
    (json as { agarose: number }).agarose === 1
      ? await fromFormat1(json as object, expected)
      : (json as ManifestRecord);
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
    checkPlacement(record, expected.regions);
    if (excerpt) record = await checkExcerpt(record, excerpt, expected.sha256);
    else {
      checkHashes(record);
      await checkHashesSha256(record, expected.sha256);
    }
    checkHeaders(record.headers);
    await checkVersion(record, expected.sha256);
  }
  await expected.trust(signedBytes(record), record.signature);
  return record;
}

async function checkFormat(json: unknown, expected: ExpectedManifest): Promise<void> {
  const format = (json as { agarose?: unknown } | null)?.agarose;
  if (format === FORMAT_VERSION || format === 1) return;
  if (typeof format === "number" && format > FORMAT_VERSION) {
    await refuseNewer(json as Manifest, expected, HAS_MESSAGES && `format ${format}`, { format });
  }
  throw invalid(HAS_MESSAGES && `has format ${JSON.stringify(format)}, ${FORMAT_VERSION} is expected`, { format });
}

/** Features that this program knows of those that a manifest can require. */
export const FEATURES: ReadonlySet<string> = new Set(HAS_ENCRYPTION ? ["inline", "encryption"] : ["inline"]);

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
  await trust(signedBytes({ ...manifest, key }), manifest.signature);
  throw newer(...reason);
}
