/** Checks of a manifest beyond the types of its fields: its code, placement, hashes, headers and version. */
import { AgaroseError, HAS_MESSAGES } from "../../errors.ts";
import type { Sha256 } from "../../ports.ts";
import { plainBytes } from "../../encryption/cells.ts";
import { HAS_ENCRYPTION } from "../../features.ts";
import { concat, HASH_BYTES, merkleRoot } from "../hash-tree.ts";
import { areTexts, isCount, isListOf, isRecord, isText } from "../shape.ts";
import { fromBase64, toHex } from "../text.ts";
import { invalid } from "./errors.ts";
import { isHeaderValue, SHA256 } from "./fields.ts";
import { versionOf } from "./identity.ts";
import {
  CHUNKS_MAX,
  type Code,
  type Gzip,
  INLINE_BYTES_MAX,
  type Manifest,
  mayKeepHeader,
  STRIPE_BYTES_DEFAULT,
  STRIPE_BYTES_MAX,
} from "./manifest.ts";
import { PAGE_BYTES_MAX, PAGES_MAX } from "./pages.ts";
import { stripeCount } from "./stripe-shape.ts";

/** Refuses k, m and stripeBytes that cannot be coded, with CODE_INVALID. */
export function checkCode(code: Code & { readonly stripeBytes?: number }): void {
  const { k, m, stripeBytes = STRIPE_BYTES_DEFAULT } = code;
  if (!isCount(k, CHUNKS_MAX) || !isCount(m, CHUNKS_MAX) || k < 1 || 2 * k + m > CHUNKS_MAX) {
    throw new AgaroseError(
      "CODE_INVALID",
      HAS_MESSAGES &&
        `k = ${JSON.stringify(k)}, m = ${JSON.stringify(m)} is not a code: whole numbers with k >= 1, m >= 0 and 2k + m <= 256 are`,
      { k, m },
    );
  }
  if (!isCount(stripeBytes, STRIPE_BYTES_MAX) || stripeBytes < 1) {
    throw new AgaroseError(
      "CODE_INVALID",
      HAS_MESSAGES &&
        `stripeBytes = ${JSON.stringify(stripeBytes)} is out of range: whole numbers from 1 to ${STRIPE_BYTES_MAX} are allowed`,
      { stripeBytes, max: STRIPE_BYTES_MAX },
    );
  }
}

/** Refuses a placement that is not of n chunks, or has fewer than k of them in the regions given. */
export function checkPlacement(m: Manifest, regions: ReadonlySet<string> | undefined): void {
  const n = m.inline === undefined ? m.k + m.m : 0;
  if (m.inline !== undefined) checkInline(m, m.inline);
  if (!Array.isArray(m.placement) || m.placement.length !== n) {
    throw invalid(
      HAS_MESSAGES && `places ${Array.isArray(m.placement) ? m.placement.length : 0} chunks, n = ${n} are expected`,
      { n },
    );
  }
  const unknown = m.placement.filter((region) => {
    if (!isText(region)) throw invalid(HAS_MESSAGES && "places a chunk in something that is not a region's name");
    return regions && !regions.has(region);
  });
  if (unknown.length > m.m) {
    throw new AgaroseError(
      "REGION_UNKNOWN",
      HAS_MESSAGES &&
        `manifest of ${JSON.stringify(m.key)} places ${n - unknown.length} chunks in configured regions, ${m.k} are needed: ` +
          `configure ${unknown.join(", ")}`,
      { regions: unknown },
    );
  }
}

/** An inline object is one data shard that needs no chunk. */
function checkInline({ k, m, bytes, stripeBytes }: Manifest, { length }: Uint8Array): void {
  if (length === bytes && bytes <= Math.min(INLINE_BYTES_MAX, stripeBytes) && k === 1 && m === 0) return;
  throw invalid(
    HAS_MESSAGES && `holds ${length} bytes inline in a ${k}+${m} code, ${bytes} in a 1+0 code are expected`,
    { bytes },
  );
}

/** A member of gzip has a head of 10 bytes, 2 of an empty block, and 8 at the end. */
const SEGMENT_BYTES_MIN = 20;
/** Deflate makes at most so many bytes of one. */
const INFLATED_MAX = 1_032;

/** Refuses segments that do not fit what is stored, that nothing inflates to, or that `requires` says nothing of. */
export function checkGzip({ gzip, requires = [], bytes, encryption }: Manifest): void {
  if (!requires.includes("gzip") && gzip === undefined) return;
  const { segmentBytes, segments, ...content } = (isRecord(gzip) ? gzip : {}) as Partial<Gzip>;
  const { bytes: length, sha256 } = content;
  const isSound =
    requires.includes("gzip") &&
    isCount(length) &&
    isCount(segmentBytes, STRIPE_BYTES_MAX) &&
    segmentBytes > 0 &&
    isListOf(segments, isCount) &&
    segments.length > 0 &&
    segments.length === Math.ceil(length / segmentBytes) &&
    segments.every(
      (stored, i) =>
        stored >= SEGMENT_BYTES_MIN && Math.min(segmentBytes, length - i * segmentBytes) <= stored * INFLATED_MAX,
    ) &&
    segments.reduce((sum, stored) => sum + stored, 0) === (HAS_ENCRYPTION && encryption ? plainBytes(bytes) : bytes) &&
    (encryption ? sha256 === undefined : isText(sha256, SHA256));
  if (isSound) return;
  throw invalid(
    HAS_MESSAGES &&
      `has no usable gzip: ${JSON.stringify(length)} bytes in ${JSON.stringify(segments?.length)} segments of ` +
        `${JSON.stringify(segmentBytes)} bytes, stored in ${bytes} bytes`,
    { bytes, length },
  );
}

/** Refuses hashes that are not n of 32 bytes for each stripe, or one for each page. */
export function checkHashes(m: Manifest): void {
  const stripes = m.inline === undefined ? stripeCount(m) : 0;
  if (m.pageStripes !== undefined || m.requires?.includes("pages")) return checkPages(m, stripes);
  if (areHashes(m.hashes, m.k + m.m) && m.hashes.length === stripes) return;
  throw invalid(
    HAS_MESSAGES &&
      `has hashes of ${Array.isArray(m.hashes) ? m.hashes.length : 0} stripes, base64 of ${m.k + m.m} hashes is ` +
        `expected for each of ${stripes}`,
    { stripes },
  );
}

/** Refuses pages that are too many, too long, or nowhere. */
function checkPages({ k, m, pageStripes: each, hashes, leaves, requires }: Manifest, stripes: number): void {
  const isSound =
    requires?.includes("pages") &&
    isCount(each) &&
    each > 0 &&
    Number.isInteger(Math.log2(each)) &&
    each * (k + m) * HASH_BYTES <= PAGE_BYTES_MAX &&
    leaves !== undefined &&
    leaves.length > 0 &&
    areHashes(hashes, 1) &&
    hashes.length <= PAGES_MAX &&
    hashes.length === Math.ceil(stripes / each);
  if (isSound) return;
  throw invalid(
    HAS_MESSAGES &&
      `has no usable pages: ${Array.isArray(hashes) ? hashes.length : 0} of ${JSON.stringify(each)} stripes, ` +
        `for ${stripes} stripes in all`,
    { stripes, pageStripes: each },
  );
}

/** Whether `list` is a list of texts, each of which is base64 of so many hashes. */
function areHashes(list: unknown, count: number): list is string[] {
  // Six bits each, and as many more as make a multiple of four.
  const characters = Math.ceil((count * HASH_BYTES * 4) / 3);
  const base64 = new RegExp(`^[A-Za-z0-9+/]{${characters}}={${-characters & 3}}$`);
  return areTexts(list, base64);
}

/** Refuses headers that cannot be served. */
export function checkHeaders(headers: unknown): void {
  if (!isRecord(headers)) throw invalid(HAS_MESSAGES && "has no headers");
  for (const [name, value] of Object.entries(headers)) {
    if (mayKeepHeader(name) && isHeaderValue(name, value)) continue;
    throw invalid(HAS_MESSAGES && `has a header ${JSON.stringify(name)} that cannot be served`, { header: name });
  }
}

/** Refuses hashes that are others than the manifest was made with. */
export async function checkHashesSha256(m: Manifest, sha256: Sha256): Promise<void> {
  const parts = m.hashes.map(fromBase64);
  const [actual, expected] = m.pageStripes
    ? [await merkleRoot(parts, sha256), m.hashesSha256 === undefined && m.hashesRoot]
    : [await sha256(concat(parts)), m.hashesSha256];
  if (toHex(actual) === expected) return;
  throw invalid(HAS_MESSAGES && `has hashes that make ${toHex(actual)}, ${expected || "another"} is written in it`);
}

/** Whether the version fits the content that the manifest describes. Without this, one key could claim another's. */
export async function checkVersion(m: Manifest, sha256: Sha256): Promise<void> {
  if (m.inline && toHex(await sha256(m.inline)) !== m.sha256)
    throw invalid(HAS_MESSAGES && `holds an inline object without the SHA-256 ${m.sha256} that is written in it`);
  const version = await versionOf(m, sha256);
  if (version === m.version) return;
  throw invalid(HAS_MESSAGES && `has the version ${m.version}, its content makes ${version}`, {
    version: m.version,
    expected: version,
  });
}
