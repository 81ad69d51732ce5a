/**
 * The manifest: what one version of one object is and where its chunks are (docs/reference/format.md, "Manifest").
 *
 * `parseManifest` is the only way in from bytes: whatever it returns is consistent, of the content that its version
 * names, and by a publisher that the reader trusts, so no reader checks again.
 */
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import type { Sha256 } from "../ports.ts";
import { canonicalJson } from "./canonical-json.ts";
import { crc32 } from "./crc32.ts";
import { concat, HASH_BYTES, merkleRoot } from "./hash-tree.ts";
import { encodeKey } from "./key.ts";
import { decodeUtf8, isCount, isRecord, isText } from "./shape.ts";
import { fromBase64, toHex } from "./text.ts";
import { isSignature, type Signature, type SignatureCheck, type Signer } from "./signature.ts";

/** The format this program writes, and the newest it reads. */
export const FORMAT_VERSION = 2;
/** The most bytes of a stored manifest. */
export const MANIFEST_BYTES_MAX = 8 * 1024 * 1024;
/** Object bytes of a stripe unless a put says otherwise. */
export const STRIPE_BYTES_DEFAULT = 4 * 1024 * 1024;
/** The most object bytes of a stripe. */
export const STRIPE_BYTES_MAX = 16 * 1024 * 1024;
/** An object that travels inside its manifest has at most this length. */
export const INLINE_BYTES_MAX = 16 * 1024;
/** Chunk indices are below this: GF(2^8) has so many rows. */
export const CHUNKS_MAX = 256;
/** The leaf list of an object: the hashes of all its blocks, stored and sent as if it were a chunk of this index. */
export const LEAF_LIST = CHUNKS_MAX;

/** The (k, m) code of an object. n + k rows must fit in GF(2^8), so that functional chunks exist: 2k + m <= 256. */
export interface Code {
  readonly k: number;
  readonly m: number;
}

/** What manifests and tombstones share. */
interface Generation {
  readonly agarose: typeof FORMAT_VERSION;
  readonly key: string;
  /**
   * Order among everything that was ever put under the key: one more than the newest of all regions. Equal generations
   * mean equal manifests, because each belongs to one writer. 0 for an object of format 1.
   */
  readonly generation: number;
  /** When this version was put: ISO 8601, UTC. For people and `Last-Modified`; `generation` is the order. */
  readonly modified: string;
  readonly signature?: Signature;
}

/** What one version of one object is, and where its chunks are. */
export interface Manifest extends Generation, Code {
  readonly deleted?: never;
  /** 32 hex digits over key, content and code (`versionText`). Equal versions have byte-equal chunks. */
  readonly version: string;
  /** 32 hex digits in the names of the chunks. Each put chooses new ones, so that no two puts share a name. */
  readonly upload: string;
  /** Length of the object. */
  readonly bytes: number;
  readonly contentType: string;
  /** Further response headers, lower-case names (only those of `HEADERS_ALLOWED`). */
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes of object data in each stripe but the last. */
  readonly stripeBytes: number;
  /** Bytes of a shard under each leaf of its hash (`hashShard`); 0 for objects that format 1 stored. */
  readonly blockBytes: number;
  /** Lower-case hex SHA-256 of the whole object. */
  readonly sha256: string;
  /** Lower-case hex SHA-256 of all shard hashes, in order of stripe, then chunk. */
  readonly hashesSha256: string;
  /** Lower-case hex root of the Merkle tree whose leaves are the shard hashes of each stripe. None from format 1. */
  readonly hashesRoot?: string;
  /** The region of each of the n chunks, by name. */
  readonly placement: readonly string[];
  /** The regions that have the leaf list. Without it, readers verify whole shards only. */
  readonly leaves?: readonly string[];
  /** Chunks that the put could not store, ascending: readers ask for them last. */
  readonly missing?: readonly number[];
  /** Base64 of the object itself, which then has no chunks. */
  readonly inline?: string;
  /** Features that a reader must know to use this manifest (`FEATURES`). */
  readonly requires?: readonly string[];
  /** Per stripe: base64 of the n concatenated hashes of its shards, in chunk order. */
  readonly hashes: readonly string[];
}

/** What replaces the manifest of a removed object, so that no region can bring it back. */
export interface Tombstone extends Generation {
  readonly deleted: true;
}

/** What a region holds under the name of a key's manifest. */
export type ManifestRecord = Manifest | Tombstone;

/** What a writer decides; `sealManifest` computes the rest. */
export type ManifestDraft = Omit<Manifest, "agarose" | "version" | "hashesSha256" | "hashesRoot" | "signature">;

/** What the caller of a parser asked for, and whom it trusts. */
export interface ExpectedManifest {
  readonly key: string;
  /** The regions that the caller knows, where at least k chunks must be. Default: any. */
  readonly regions?: ReadonlySet<string>;
  readonly trust: SignatureCheck;
  readonly sha256: Sha256;
}

/** Features that this program knows of those that a manifest can require. */
const FEATURES: ReadonlySet<string> = new Set(["inline"]);

/** The response headers, in lower case, that a manifest may carry. */
export const HEADERS_ALLOWED: ReadonlySet<string> = new Set([
  "cache-control",
  "content-disposition",
  "content-encoding",
  "content-language",
]);

/** The shape of one stripe of an object. */
export interface StripeShape {
  readonly index: number;
  /** Where its data is in the object: [start, start + dataBytes). */
  readonly start: number;
  readonly dataBytes: number;
  /** Length of each of its shards: ceil(dataBytes / k); the last data shard is padded with zeros. */
  readonly shardBytes: number;
  /** Where its shard begins in every chunk. */
  readonly chunkOffset: number;
}

/** The same blocks of each shard of a stripe: `chunkOffset` and `shardBytes` are of these blocks alone. */
export interface StripePart extends StripeShape {
  /** Where the blocks begin in their shard. */
  readonly from: number;
  /** The hashes of the blocks of all n shards of the stripe. None: the part is a whole shard. */
  readonly leaves?: Promise<Uint8Array>;
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

/** How many blocks each shard of a stripe has. */
export function blockCount({ blockBytes }: Pick<Manifest, "blockBytes">, { shardBytes }: StripeShape): number {
  return blockBytes === 0 ? 1 : Math.ceil(shardBytes / blockBytes);
}

/** The part of the leaf list that stripe `index` has: of each of its n shards, the hash of each block. */
export function leafShape(
  object: Code & Pick<Manifest, "bytes" | "stripeBytes" | "blockBytes">,
  index: number,
): StripeShape {
  const stripe = stripeShape(object, index);
  const bytesOf = (shape: StripeShape): number => (object.k + object.m) * blockCount(object, shape) * HASH_BYTES;
  return { ...stripe, chunkOffset: index * bytesOf(stripeShape(object, 0)), shardBytes: bytesOf(stripe) };
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
 * Whether `chunk` is a functional one: a row of the code beyond the n that are stored (Sprout, section III), so that
 * only a cache has it and no manifest has a hash of it.
 */
export function isFunctional({ k, m }: Code, chunk: number): boolean {
  return chunk >= k + m;
}

/** The 32-byte hash of chunk `chunk` (< n) in stripe `stripe`. */
export function chunkHash(manifest: Manifest, stripe: number, chunk: number): Uint8Array {
  const hashes = fromBase64(manifest.hashes[stripe] ?? "");
  return hashes.subarray(chunk * HASH_BYTES, (chunk + 1) * HASH_BYTES);
}

/** The object itself where its manifest holds it; undefined for an object in chunks. */
export function inlineBytes({ inline }: Manifest): Uint8Array | undefined {
  return inline === undefined ? undefined : fromBase64(inline);
}

/** The `hashes` entry of a stripe from its n hashes in chunk order. */
export function encodeHashes(hashes: readonly Uint8Array[]): string {
  return btoa(hashes.map((hash) => String.fromCharCode(...hash)).join(""));
}

/**
 * The text whose SHA-256, cut to 32 hex digits, is an object's version. It covers the key, the content and the code, so
 * no other key can claim a version, and the same content coded differently never mixes its chunks.
 */
export function versionText(object: VersionedFields): string {
  const { key, sha256, bytes, k, m, stripeBytes, blockBytes, hashesSha256 } = object;
  const lines = [encodeKey(key), sha256, bytes, `${k}+${m}`, `${stripeBytes}/${blockBytes}`, hashesSha256];
  return ["agarose/2", ...lines, ""].join("\n");
}

type VersionedFields = Code &
  Pick<Manifest, "key" | "sha256" | "bytes" | "stripeBytes" | "blockBytes" | "hashesSha256">;

/** Completes a manifest: the hashes over its hashes, its version and, with a signer, its signature. */
export async function sealManifest(draft: ManifestDraft, sha256: Sha256, sign?: Signer): Promise<Manifest> {
  const stripes = draft.hashes.map(fromBase64);
  const [hashesSha256, hashesRoot] = await Promise.all([
    sha256(concat(stripes)).then(toHex),
    merkleRoot(stripes, sha256).then(toHex),
  ]);
  const version = await versionOf({ ...draft, hashesSha256 }, sha256);
  const { hashes, ...rest } = draft;
  const unsigned = { agarose: FORMAT_VERSION, ...rest, version, hashesSha256, hashesRoot, hashes } as const;
  return signed(unsigned, sign);
}

/** A tombstone of generation `generation`, signed where there is a signer. */
export function sealTombstone(
  draft: Omit<Tombstone, "agarose" | "deleted" | "signature">,
  sign?: Signer,
): Promise<Tombstone> {
  return signed({ agarose: FORMAT_VERSION, ...draft, deleted: true } as const, sign);
}

async function signed<T extends ManifestRecord>(record: T, sign: Signer | undefined): Promise<T> {
  return sign ? { ...record, signature: await sign(signedBytes(record)) } : record;
}

/** What a signature covers: all fields but the hashes, which `hashesSha256` covers, the signature and the CRC-32. */
export function signedBytes(record: ManifestRecord): Uint8Array {
  const { hashes: _hashes, signature: _signature, ...covered } = record as Manifest;
  return new TextEncoder().encode(`agarose-manifest/2\n${canonicalJson(covered)}`);
}

function versionOf(object: Parameters<typeof versionText>[0], sha256: Sha256): Promise<string> {
  return shortHash(versionText(object), sha256);
}

/** The first 32 hex digits of the SHA-256 of `text`. */
async function shortHash(text: string, sha256: Sha256): Promise<string> {
  return toHex(await sha256(new TextEncoder().encode(text))).slice(0, 32);
}

/** Whether an object was removed. */
export function isTombstone(record: ManifestRecord): record is Tombstone {
  return record.deleted === true;
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
export function encodeManifest(record: ManifestRecord): Uint8Array {
  const body = JSON.stringify(record).slice(0, -1);
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
  checkFormat(json);
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
  const { crc32: _crc32, ...fields } = json;
  return checkRecord(fields, expected);
}

/** `parseManifest` for a manifest that is already parsed, as in a plan. A tombstone is MANIFEST_INVALID there. */
export async function checkManifest(json: unknown, expected: ExpectedManifest): Promise<Manifest> {
  checkFormat(json);
  const record = await checkRecord(json, expected);
  if (isTombstone(record)) throw invalid(HAS_MESSAGES && "is of an object that was removed");
  return record;
}

async function checkRecord(json: object, expected: ExpectedManifest): Promise<ManifestRecord> {
  const record =
    (json as { agarose: number }).agarose === 1 ? await fromFormat1(json, expected) : (json as ManifestRecord);
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
    checkRequired(record);
    checkCode(record);
    checkPlacement(record, expected.regions);
    checkHashes(record);
    checkHeaders(record.headers);
    await checkVersion(record, expected.sha256);
  }
  await expected.trust(signedBytes(record), record.signature);
  return record;
}

/**
 * Whether version and hashes fit the content that the manifest describes. Without this, one key could claim another's.
 */
async function checkVersion(m: Manifest, sha256: Sha256): Promise<void> {
  const hashes = toHex(await sha256(concat(m.hashes.map(fromBase64))));
  if (hashes !== m.hashesSha256) {
    throw invalid(HAS_MESSAGES && `has hashes with the SHA-256 ${hashes}, ${m.hashesSha256} is written in it`);
  }
  const content = inlineBytes(m);
  if (content && toHex(await sha256(content)) !== m.sha256)
    throw invalid(HAS_MESSAGES && `holds an inline object without the SHA-256 ${m.sha256} that is written in it`);
  const version = await versionOf(m, sha256);
  if (version === m.version) return;
  throw invalid(HAS_MESSAGES && `has the version ${m.version}, its content makes ${version}`, {
    version: m.version,
    expected: version,
  });
}

/** Brings a manifest of format 1 to today's form, so that everything behind the parser knows one form only. */
async function fromFormat1(json: object, { sha256, key }: ExpectedManifest): Promise<Manifest> {
  const old = json as Pick<Manifest, "version" | "sha256" | "k" | "m" | "stripeBytes" | "hashes" | "bytes">;
  checkFields(old, FIELDS_1);
  checkCode(old);
  const { inline: _inline, ...chunked } = json as Manifest;
  checkHashes(chunked);
  const text = `agarose/1 ${old.sha256} ${old.k}+${old.m} ${old.stripeBytes}`;
  const version = await shortHash(text, sha256);
  if (version !== old.version) {
    throw invalid(HAS_MESSAGES && `has the version ${old.version}, its content makes ${version}`, {
      version: old.version,
    });
  }
  const { modified, contentType, headers, placement } = json as Manifest;
  const { bytes, k, m, stripeBytes, sha256: content, hashes } = old;
  const hashesSha256 = toHex(await sha256(concat(hashes.map(fromBase64))));
  const object = {
    key: (json as Manifest).key,
    generation: 0,
    modified,
    upload: old.version,
    bytes,
    contentType,
    headers,
    k,
    m,
    stripeBytes,
    blockBytes: 0,
    sha256: content,
    hashesSha256,
    placement,
    hashes,
  };
  return { agarose: FORMAT_VERSION, ...object, version: await versionOf({ ...object, key }, sha256) };
}

function checksum(text: string): string {
  return crc32(new TextEncoder().encode(text)).toString(16).padStart(8, "0");
}

function checkFormat(json: unknown): asserts json is { agarose: number; crc32?: unknown } {
  const format = (json as { agarose?: unknown } | null)?.agarose;
  if (format === FORMAT_VERSION || format === 1) return;
  if (typeof format === "number" && format > FORMAT_VERSION)
    throw newer(HAS_MESSAGES && `format ${format}`, { format });
  throw invalid(HAS_MESSAGES && `has format ${JSON.stringify(format)}, ${FORMAT_VERSION} is expected`, { format });
}

function checkRequired({ requires = [] }: Manifest): void {
  const unknown = requires.filter((feature) => !FEATURES.has(feature));
  if (unknown.length > 0) throw newer(HAS_MESSAGES && `the features ${unknown.join(", ")}`, { features: unknown });
}

function newer(what: string | false, details: Record<string, unknown>): AgaroseError {
  return new AgaroseError(
    "MANIFEST_NEWER",
    HAS_MESSAGES && `manifest has ${what}, this program reads formats up to ${FORMAT_VERSION}: upgrade it`,
    { ...details, supported: FORMAT_VERSION },
  );
}

/** Visible ASCII and spaces: nothing that could end the header and begin another. */
const HEADER_VALUE = /^[\x20-\x7e]{0,1024}$/;
const ID = /^[0-9a-f]{32}$/;
const SHA256 = /^[0-9a-f]{64}$/;

type FieldChecks = Readonly<Record<string, (value: unknown) => boolean>>;

const GENERATION_FIELDS: FieldChecks = {
  generation: (value) => isCount(value),
  modified: (value) =>
    isText(value, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/) && Date.parse(value) > Number.NEGATIVE_INFINITY,
  signature: (value) => value === undefined || isSignature(value),
};

/** What format 1 has of them. */
const FIELDS_1: FieldChecks = {
  version: (value) => isText(value, ID),
  sha256: (value) => isText(value, SHA256),
  bytes: (value) => isCount(value),
  // `checkCode` says more of it.
  stripeBytes: (value) => value !== undefined,
};

const FIELDS: FieldChecks = {
  ...GENERATION_FIELDS,
  ...FIELDS_1,
  upload: (value) => isText(value, ID),
  contentType: (value) => isText(value, HEADER_VALUE),
  blockBytes: (value) => isCount(value, STRIPE_BYTES_MAX),
  hashesSha256: (value) => isText(value, SHA256),
  hashesRoot: (value) => value === undefined || isText(value, SHA256),
  requires: (value) => value === undefined || (Array.isArray(value) && value.every((feature) => isText(feature))),
  inline: (value) => value === undefined || isText(value, /^[A-Za-z0-9+/]*={0,2}$/),
  leaves: (value) => value === undefined || (Array.isArray(value) && value.every((region) => isText(region))),
  missing: (value) =>
    value === undefined || (Array.isArray(value) && value.every((chunk) => isCount(chunk, CHUNKS_MAX))),
};

function checkFields(m: object, fields: FieldChecks): void {
  for (const [field, isSound] of Object.entries(fields)) {
    if (!isSound((m as Record<string, unknown>)[field]))
      throw invalid(HAS_MESSAGES && `has no usable ${field}`, { field });
  }
}

function checkPlacement(m: Manifest, regions: ReadonlySet<string> | undefined): void {
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
function checkInline({ k, m, bytes, stripeBytes }: Manifest, inline: string): void {
  const padding = inline.endsWith("==") ? 2 : Number(inline.endsWith("="));
  const length = (inline.length / 4) * 3 - padding;
  if (length === bytes && bytes <= Math.min(INLINE_BYTES_MAX, stripeBytes) && k === 1 && m === 0) return;
  throw invalid(
    HAS_MESSAGES && `holds ${length} bytes inline in a ${k}+${m} code, ${bytes} in a 1+0 code are expected`,
    { bytes },
  );
}

function checkHashes(m: Manifest): void {
  const stripes = m.inline === undefined ? stripeCount(m) : 0;
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
