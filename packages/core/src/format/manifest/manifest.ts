/**
 * The fields of an object's manifest (docs/reference/format.md, "Manifest"), their limits, and values derived from
 * them.
 */
import type { Sha256 } from "../../ports.ts";
import { concat } from "../hash-tree.ts";
import { chunkName } from "../key.ts";
import type { Signature, SignatureCheck } from "../signature.ts";
import { toBase64 } from "../text.ts";

/** The format this program writes, and the newest it reads. */
export const FORMAT_VERSION = 2;
/** The most bytes of a stored manifest. */
export const MANIFEST_BYTES_MAX = 64 * 1024;
/** Object bytes of a stripe unless a put says otherwise. */
export const STRIPE_BYTES_DEFAULT = 4 * 1024 * 1024;
/** The most object bytes of a stripe. */
export const STRIPE_BYTES_MAX = 16 * 1024 * 1024;
/** An object that travels inside its manifest has at most this length. */
export const INLINE_BYTES_MAX = 16 * 1024;
/** Chunk indices are below this: GF(2^8) has so many rows. */
export const CHUNKS_MAX = 256;
/**
 * The leaf list of an object, stored and sent as if it were a chunk of this index: the hashes of all its blocks, and
 * those of its shards in pages where the manifest has no room for them.
 */
export const LEAF_LIST = CHUNKS_MAX;

/** The response headers, in lower case, that a manifest may carry, beside those of S3 (`mayKeepHeader`). */
export const HEADERS_ALLOWED: ReadonlySet<string> = new Set([
  "cache-control",
  "content-disposition",
  "content-encoding",
  "content-language",
  "content-security-policy",
  "cross-origin-embedder-policy",
  "cross-origin-opener-policy",
  "cross-origin-resource-policy",
  "expires",
]);

/**
 * Whether a manifest may carry the response header `name`, in lower case: one of `HEADERS_ALLOWED`, or what an S3
 * client says of its object, which is metadata (`x-amz-meta-*`), tags and a checksum (`x-amz-checksum-*`).
 */
export function mayKeepHeader(name: string): boolean {
  return HEADERS_ALLOWED.has(name) || /^x-amz-(tagging|(meta|checksum)-[a-z0-9!#$%&'*+.^_`|~-]+)$/.test(name);
}

/**
 * The most characters of a header's value. User metadata may have 2,048 bytes, as in S3; outside ASCII they are kept as
 * a word of RFC 2047, which is longer by a third and 12 characters. Tags are ten keys of 128 characters and values of
 * 256.
 */
export function headerCharactersMax(name: string): number {
  if (name === "x-amz-tagging") return 4096;
  return name.startsWith("x-amz-meta-") ? 2744 : 1024;
}

/** The (k, m) code of an object. n + k rows must fit in GF(2^8), so that functional chunks exist: 2k + m <= 256. */
export interface Code {
  readonly k: number;
  readonly m: number;
}

/** The fields that manifests and tombstones share. */
interface Generation {
  readonly agarose: typeof FORMAT_VERSION;
  readonly key: string;
  /**
   * Order among everything that was ever put under the key: one more than the newest of all regions. Equal generations
   * mean equal manifests, because each belongs to one writer.
   */
  readonly generation: number;
  /** When this version was put: ISO 8601, UTC. For people and `Last-Modified`; `generation` is the order. */
  readonly modified: string;
  readonly signature?: Signature;
}

/** How an object is encrypted: its stored bytes are cells (docs/reference/format.md, "Encryption"). */
export interface Encryption {
  /** `A256GCM` is the one of today. */
  readonly cipher: string;
  /** The secret that encrypts the data key: 16 hex digits. */
  readonly secret: string;
  /** The encrypted data key: base64 of 60 bytes. */
  readonly dataKey: string;
  /** Type, headers and SHA-256 of the plain content, encrypted by the data key: base64. */
  readonly properties: string;
}

/** How an object is compressed: what is stored, or encrypted, are segments of gzip (docs/reference/format.md). */
export interface Gzip {
  /** Length of the content. */
  readonly bytes: number;
  /** Lower-case hex SHA-256 of the content. An encrypted object has it among its properties. */
  readonly sha256?: string;
  /** Bytes of the content in each segment but the last. */
  readonly segmentBytes: number;
  /** Length of each segment, compressed. */
  readonly segments: readonly number[];
}

/**
 * Further rows of the code, stored of an object that is read a lot (docs/reference/format.md, "Extra chunks"). No
 * manifest has their shard hashes, so readers prove them as functional chunks. Without them the object reads the same.
 */
export interface Extra {
  /** 32 hex digits in the names of these chunks. */
  readonly upload: string;
  /** The region of each, by name: of rows n, n + 1 and so on. */
  readonly placement: readonly string[];
  /** Lower-case hex SHA-256 of each, by which a verification knows it. */
  readonly sha256: readonly string[];
}

/** The content of one version of an object, and the places of its chunks. */
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
  /** Bytes of a shard under each leaf of its hash (`hashShard`). */
  readonly blockBytes: number;
  /** Lower-case hex SHA-256 of the whole object. */
  readonly sha256: string;
  /** Lower-case hex SHA-256 of all shard hashes, in order of stripe, then chunk. Absent where they are in pages. */
  readonly hashesSha256?: string;
  /** Lower-case hex root of the Merkle tree whose leaves are the shard hashes of each stripe. */
  readonly hashesRoot?: string;
  /** The region of each of the n chunks, by name. */
  readonly placement: readonly string[];
  /** The regions of the leaf list. Without it, readers verify whole shards only, and cannot read an object of pages. */
  readonly leaves?: readonly string[];
  /** Where the shard hashes are in pages of the leaf list: how many stripes each page has, a power of two. */
  readonly pageStripes?: number;
  /** Chunks that the put could not store, ascending: readers request them last. */
  readonly missing?: readonly number[];
  /** Chunks beyond the n of the code, which are added and deleted under the same version. */
  readonly extra?: Extra;
  /** The object itself, which then has no chunks. JSON has it as base64. */
  readonly inline?: Uint8Array;
  /** Set where the object is encrypted. All else then describes what is stored: nothing of the plain content. */
  readonly encryption?: Encryption;
  /** Set where the object is compressed. `bytes` and `sha256` of the manifest are then those of its segments. */
  readonly gzip?: Gzip;
  /** Features that a reader must know to use this manifest (`FEATURES`). */
  readonly requires?: readonly string[];
  /**
   * Per stripe: base64 of the n concatenated hashes of its shards, in chunk order. With `pageStripes`: per page, base64
   * of its root.
   */
  readonly hashes: readonly string[];
}

/** Replaces the manifest of a removed object, so that no region can bring it back. */
export interface Tombstone extends Generation {
  readonly deleted: true;
}

/** The record of a region under the name of a key's manifest. */
export type ManifestRecord = Manifest | Tombstone;

/** The manifest that a parser's caller expects, and the keys that it trusts. */
export interface ExpectedManifest {
  readonly key: string;
  /** The regions that the caller knows, where at least k chunks must be. Default: any. */
  readonly regions?: ReadonlySet<string>;
  readonly trust: SignatureCheck;
  readonly sha256: Sha256;
}

/** Whether an object was removed. */
export function isTombstone(record: ManifestRecord): record is Tombstone {
  return record.deleted === true;
}

/**
 * Whether `chunk` is a functional one: a row of the code beyond the n that every object has (Sprout, section III), so
 * that no manifest has a hash of its shards. Caches have some, and buckets those of `extra`.
 */
export function isFunctional({ k, m }: Code, chunk: number): boolean {
  return chunk >= k + m;
}

/** The region of each chunk that buckets have, by index: the extra ones follow the n of the code. */
export function chunkRegions({ placement, extra }: Pick<Manifest, "placement" | "extra">): readonly string[] {
  return extra ? [...placement, ...extra.placement] : placement;
}

/** The name in its bucket of a chunk, or of the leaf list. */
export function chunkNameOf(manifest: Code & Pick<Manifest, "key" | "upload" | "extra">, chunk: number): string {
  const { key, upload, extra } = manifest;
  const isExtra = extra && chunk !== LEAF_LIST && isFunctional(manifest, chunk);
  return chunkName(key, isExtra ? extra.upload : upload, chunk);
}

/** Whether two records are the same in every field. */
export function areSame(a: ManifestRecord | undefined, b: ManifestRecord | undefined): boolean {
  return a !== undefined && b !== undefined && JSON.stringify(recordJson(a)) === JSON.stringify(recordJson(b));
}

/** The fields of a record for JSON, which has an inline object as base64. */
export function recordJson(record: ManifestRecord): object {
  const { inline } = record as Manifest;
  return inline ? { ...record, inline: toBase64(inline) } : record;
}

/** The `hashes` entry of a stripe from its n hashes in chunk order. */
export function encodeHashes(hashes: readonly Uint8Array[]): string {
  return toBase64(concat(hashes));
}
