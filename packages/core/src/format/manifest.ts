/**
 * The manifest: what one version of one object is and where its chunks are (docs/reference/format.md, "Manifest").
 *
 * `parseManifest` is the only way in from bytes: whatever it returns is consistent, so no reader checks again.
 */
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { crc32 } from "./crc32.ts";
import { decodeUtf8, isCount, isRecord, isText } from "./shape.ts";

/** The format this program writes, and the newest it reads. */
export const FORMAT_VERSION = 1;
export const MANIFEST_BYTES_MAX = 8 * 1024 * 1024;
export const STRIPE_BYTES_DEFAULT = 4 * 1024 * 1024;
export const STRIPE_BYTES_MAX = 16 * 1024 * 1024;
export const HASH_BYTES = 32;
/** Chunk indices are below this: GF(2^8) has so many rows. */
export const CHUNKS_MAX = 256;

/** The (k, m) code of an object. n + k rows must fit in GF(2^8), so that functional chunks exist: 2k + m <= 256. */
export interface Code {
  readonly k: number;
  readonly m: number;
}

export interface Manifest extends Code {
  readonly agarose: typeof FORMAT_VERSION;
  readonly key: string;
  /** 32 hex digits over content and code: `versionText`. Equal versions have byte-equal chunks. */
  readonly version: string;
  /** Length of the object. */
  readonly bytes: number;
  readonly contentType: string;
  /** Further response headers, lower-case names (only those of `HEADERS_ALLOWED`). */
  readonly headers: Readonly<Record<string, string>>;
  /** When this version was put: ISO 8601, UTC. */
  readonly modified: string;
  /** Bytes of object data in each stripe but the last. */
  readonly stripeBytes: number;
  /** Lower-case hex SHA-256 of the whole object. */
  readonly sha256: string;
  /** The region of each of the n chunks, by name. */
  readonly placement: readonly string[];
  /** Per stripe: base64 of the n concatenated SHA-256 hashes of its shards, in chunk order. */
  readonly hashes: readonly string[];
}

export const HEADERS_ALLOWED: ReadonlySet<string> = new Set([
  "cache-control",
  "content-disposition",
  "content-encoding",
  "content-language",
]);

/** The shape of one stripe of an object. */
export interface StripeShape {
  readonly index: number;
  /** Where its data stands in the object: [start, start + dataBytes). */
  readonly start: number;
  readonly dataBytes: number;
  /** Length of each of its shards: ceil(dataBytes / k); the last data shard is padded with zeros. */
  readonly shardBytes: number;
  /** Where its shard stands in every chunk. */
  readonly chunkOffset: number;
}

/** How many stripes an object has; an empty one has none. */
export function stripeCount(object: { readonly bytes: number; readonly stripeBytes: number }): number {
  return Math.ceil(object.bytes / object.stripeBytes);
}

/** The shape of stripe `index`, which must exist. */
export function stripeShape(
  object: { readonly bytes: number; readonly stripeBytes: number; readonly k: number },
  index: number,
): StripeShape {
  const start = index * object.stripeBytes;
  const dataBytes = Math.min(object.stripeBytes, object.bytes - start);
  const fullShardBytes = Math.ceil(object.stripeBytes / object.k);
  return {
    index,
    start,
    dataBytes,
    shardBytes: Math.ceil(dataBytes / object.k),
    chunkOffset: index * fullShardBytes,
  };
}

/** Length of each chunk of an object: the sum of its shards. */
export function chunkBytes(object: {
  readonly bytes: number;
  readonly stripeBytes: number;
  readonly k: number;
}): number {
  const stripes = stripeCount(object);
  if (stripes === 0) return 0;
  const last = stripeShape(object, stripes - 1);
  return last.chunkOffset + last.shardBytes;
}

/**
 * Whether `chunk` is a functional one: a row of the code beyond the n that are stored (Sprout, section III), so that only a
 * cache has it and no manifest has a hash of it.
 */
export function isFunctional({ k, m }: Code, chunk: number): boolean {
  return chunk >= k + m;
}

/** The 32-byte hash of chunk `chunk` (< n) in stripe `stripe`. */
export function chunkHash(manifest: Manifest, stripe: number, chunk: number): Uint8Array {
  const all = atob(manifest.hashes[stripe] ?? "").slice(chunk * HASH_BYTES, (chunk + 1) * HASH_BYTES);
  return Uint8Array.from(all, (character) => character.charCodeAt(0));
}

/** The `hashes` entry of a stripe from its n hashes in chunk order. */
export function encodeHashes(hashes: readonly Uint8Array[]): string {
  return btoa(hashes.map((hash) => String.fromCharCode(...hash)).join(""));
}

/**
 * The text whose SHA-256, cut to 32 hex digits, is an object's version. It covers the code as well as the content, so
 * that the same content coded differently never mixes its chunks with the old ones.
 */
export function versionText(object: Code & { readonly sha256: string; readonly stripeBytes: number }): string {
  return `agarose/1 ${object.sha256} ${object.k}+${object.m} ${object.stripeBytes}`;
}

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

/**
 * The bytes of a manifest as they are stored: JSON whose last field is the CRC-32 of all bytes before it, so that a
 * damaged copy is known as one, and another region's is used. Throws MANIFEST_TOO_LARGE.
 */
export function encodeManifest(manifest: Manifest): Uint8Array {
  const body = JSON.stringify(manifest).slice(0, -1);
  const bytes = new TextEncoder().encode(`${body},"crc32":"${checksum(body)}"}`);
  refuseTooLarge(bytes.length);
  return bytes;
}

/** Refuses a manifest of more than MANIFEST_BYTES_MAX bytes before it is held in memory. */
export function refuseTooLarge(bytes: number): void {
  if (bytes <= MANIFEST_BYTES_MAX) return;
  throw new AgaroseError(
    "MANIFEST_TOO_LARGE",
    HAS_MESSAGES &&
      `manifest is ${bytes} bytes, at most ${MANIFEST_BYTES_MAX} are allowed: put the object with larger stripes`,
    { bytes, max: MANIFEST_BYTES_MAX },
  );
}

/**
 * Parses and checks a stored manifest.
 *
 * @param expected what the caller asked for: the key it must be of, and the regions that it knows, where at least k chunks must
 *   stand.
 * @throws MANIFEST_TOO_LARGE, MANIFEST_NEWER, MANIFEST_INVALID, CODE_INVALID or REGION_UNKNOWN.
 */
export function parseManifest(
  input: Uint8Array | string,
  expected: { readonly key: string; readonly regions?: ReadonlySet<string> },
): Manifest {
  refuseTooLarge(input.length);
  let text: string;
  let json: { agarose?: unknown; crc32?: unknown } | null;
  try {
    text = typeof input === "string" ? input : decodeUtf8(input);
    json = JSON.parse(text) as typeof json;
  } catch (error) {
    throw invalid(HAS_MESSAGES && `is not JSON in UTF-8 (${input.length} bytes; it may be truncated)`, {}, error);
  }
  checkFormat(json?.agarose);
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
  delete json!.crc32;
  return checkManifest(json, expected);
}

/** `parseManifest` for JSON that is already parsed, as in a plan. */
export function checkManifest(
  json: unknown,
  expected: { readonly key: string; readonly regions?: ReadonlySet<string> },
): Manifest {
  const m = json as Manifest;
  checkFormat(m?.agarose);
  checkFields(m);
  checkCode(m);
  // So it is a key: whoever asks for it has checked that.
  if (m.key !== expected.key) {
    throw invalid(
      HAS_MESSAGES && `has the key ${JSON.stringify(m.key)}, ${JSON.stringify(expected.key)} was asked for`,
      {
        key: m.key,
      },
    );
  }
  checkPlacement(m, expected.regions);
  checkHashes(m);
  checkHeaders(m.headers);
  return m;
}

function checksum(text: string): string {
  return crc32(new TextEncoder().encode(text)).toString(16).padStart(8, "0");
}

function checkFormat(format: unknown): void {
  if (format === FORMAT_VERSION) return;
  if (typeof format === "number" && format > FORMAT_VERSION) {
    throw new AgaroseError(
      "MANIFEST_NEWER",
      HAS_MESSAGES && `manifest has format ${format}, this program reads up to ${FORMAT_VERSION}: upgrade it`,
      { format, supported: FORMAT_VERSION },
    );
  }
  throw invalid(HAS_MESSAGES && `has format ${JSON.stringify(format)}, ${FORMAT_VERSION} is expected`, { format });
}

/** Visible ASCII and spaces: nothing that could end the header and begin another. */
const HEADER_VALUE = /^[\x20-\x7e]{0,1024}$/;

const FIELDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  version: (value) => isText(value, /^[0-9a-f]{32}$/),
  contentType: (value) => isText(value, HEADER_VALUE),
  modified: (value) =>
    isText(value, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/) && Date.parse(value) > Number.NEGATIVE_INFINITY,
  sha256: (value) => isText(value, /^[0-9a-f]{64}$/),
  bytes: (value) => isCount(value),
  // `checkCode` says more of it.
  stripeBytes: (value) => value !== undefined,
};

function checkFields(m: object): void {
  for (const [field, isSound] of Object.entries(FIELDS)) {
    if (!isSound((m as Record<string, unknown>)[field]))
      throw invalid(HAS_MESSAGES && `has no usable ${field}`, { field });
  }
}

function checkPlacement(m: Manifest, regions: ReadonlySet<string> | undefined): void {
  const n = m.k + m.m;
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

function checkHashes(m: Manifest): void {
  const stripes = stripeCount(m);
  if (!Array.isArray(m.hashes) || m.hashes.length !== stripes) {
    throw invalid(
      HAS_MESSAGES && `has hashes of ${Array.isArray(m.hashes) ? m.hashes.length : 0} stripes, ${stripes} are expected`,
      {
        stripes,
      },
    );
  }
  const hashBytes = (m.k + m.m) * HASH_BYTES;
  // Six bits each, and as many more as make a multiple of four.
  const characters = Math.ceil((hashBytes * 4) / 3);
  const base64 = new RegExp(`^[A-Za-z0-9+/]{${characters}}={${-characters & 3}}$`);
  for (const [stripe, hashes] of m.hashes.entries()) {
    if (isText(hashes, base64)) continue;
    throw invalid(HAS_MESSAGES && `has hashes of stripe ${stripe} that are not base64 of ${hashBytes} bytes`, {
      stripe,
    });
  }
}

function checkHeaders(headers: unknown): void {
  if (!isRecord(headers)) throw invalid(HAS_MESSAGES && "has no headers");
  for (const [name, value] of Object.entries(headers)) {
    if (HEADERS_ALLOWED.has(name) && isText(value, HEADER_VALUE)) continue;
    throw invalid(HAS_MESSAGES && `has a header ${JSON.stringify(name)} that cannot be served`, { header: name });
  }
}

function invalid(problem: string | false, details: Record<string, unknown> = {}, cause?: unknown): AgaroseError {
  return new AgaroseError(
    "MANIFEST_INVALID",
    HAS_MESSAGES && `manifest ${problem}: run \`agarose verify\``,
    details,
    cause,
  );
}
