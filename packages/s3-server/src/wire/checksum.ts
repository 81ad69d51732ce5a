/**
 * The checksums that a client may send with an object or a part: in a header, a trailer, the query or an XML element.
 */
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { createCRC32, createCRC64, createXXHash128, createXXHash3, createXXHash64, type IHasher } from "hash-wasm";
import { S3Error } from "./s3-error.ts";

/** A running checksum. */
export interface Checksum {
  update(bytes: Uint8Array): void;
  /** In base64. */
  digest(): string;
}

/** Whether the checksum of a multipart upload is of all bytes, or of the checksums of its parts. */
export type ChecksumType = "FULL_OBJECT" | "COMPOSITE";

interface Algorithm {
  readonly bytes: number;
  /** The choices of a multipart upload, with the default first. */
  readonly types: readonly ChecksumType[];
  readonly start: () => Promise<Checksum>;
}

/** Castagnoli's polynomial, and that of the NVM Express standard, both reflected. */
const CRC32C = 0x82f63b78;
const CRC64_NVME = "9a6c9329ac4bc9b5";

/** The algorithms by the names that S3 gives them. */
const ALGORITHMS = {
  CRC32: { bytes: 4, types: ["COMPOSITE", "FULL_OBJECT"], start: async () => new Crc32() },
  CRC32C: { bytes: 4, types: ["COMPOSITE", "FULL_OBJECT"], start: () => wasm(createCRC32(CRC32C)) },
  CRC64NVME: { bytes: 8, types: ["FULL_OBJECT"], start: () => wasm(createCRC64(CRC64_NVME)) },
  SHA1: { bytes: 20, types: ["COMPOSITE"], start: () => hash("sha1") },
  SHA256: { bytes: 32, types: ["COMPOSITE"], start: () => hash("sha256") },
  SHA512: { bytes: 64, types: ["COMPOSITE"], start: () => hash("sha512") },
  MD5: { bytes: 16, types: ["COMPOSITE"], start: () => hash("md5") },
  XXHASH64: { bytes: 8, types: ["COMPOSITE"], start: () => wasm(createXXHash64()) },
  XXHASH3: { bytes: 8, types: ["COMPOSITE"], start: () => wasm(createXXHash3()) },
  XXHASH128: { bytes: 16, types: ["COMPOSITE"], start: () => wasm(createXXHash128()) },
} as const satisfies Record<string, Algorithm>;

/** The name of an algorithm, as S3 spells it. */
export type ChecksumAlgorithm = keyof typeof ALGORITHMS;

/** The names of all algorithms. */
export const CHECKSUM_ALGORITHMS = Object.keys(ALGORITHMS) as readonly ChecksumAlgorithm[];

/** The headers that carry a checksum. */
export const CHECKSUM_HEADERS: readonly string[] = CHECKSUM_ALGORITHMS.map((name) => checksumHeader(name));

/** The XML elements that carry the checksum of a part. */
export const CHECKSUM_ELEMENTS: Readonly<Record<string, "text">> = Object.fromEntries(
  CHECKSUM_ALGORITHMS.map((name) => [checksumElement(name), "text"]),
);

/** Returns the header of an algorithm, in lower case: `x-amz-checksum-crc32`. */
export function checksumHeader(algorithm: ChecksumAlgorithm): string {
  return `x-amz-checksum-${algorithm.toLowerCase()}`;
}

/** Returns the XML element of an algorithm: `ChecksumCRC32`. */
export function checksumElement(algorithm: ChecksumAlgorithm): string {
  return `Checksum${algorithm}`;
}

/** Returns the algorithm of a header (`x-amz-checksum-crc32`); undefined for a header that carries no checksum. */
export function algorithmOfHeader(header: string): ChecksumAlgorithm | undefined {
  return CHECKSUM_ALGORITHMS.find((name) => checksumHeader(name) === header.toLowerCase());
}

/** Returns the algorithm of a name that a client gave (`CRC32`). Throws S3Error InvalidRequest. */
export function algorithmNamed(name: string): ChecksumAlgorithm {
  const found = CHECKSUM_ALGORITHMS.find((known) => known === name.toUpperCase());
  if (found) return found;
  throw new S3Error(
    "InvalidRequest",
    `Checksum algorithm ${name} is unknown: use one of ${CHECKSUM_ALGORITHMS.join(", ")}.`,
  );
}

/** Starts a checksum. */
export function startChecksum(algorithm: ChecksumAlgorithm): Promise<Checksum> {
  return ALGORITHMS[algorithm].start();
}

/** Says of a checksum that it is of the whole object, as that of a put always is. */
export const WHOLE = { "x-amz-checksum-type": "FULL_OBJECT" };

/** Throws S3Error InvalidRequest unless `value` has the form of a checksum in base64. */
export function checkChecksumForm(algorithm: ChecksumAlgorithm, value: string): void {
  const bytes = Buffer.from(value, "base64");
  if (bytes.length === ALGORITHMS[algorithm].bytes && bytes.toString("base64") === value) return;
  throw new S3Error("InvalidRequest", `Value for ${checksumHeader(algorithm)} header is invalid.`);
}

/**
 * Returns the type that an upload with `algorithm` has when its client asks for `type`. Throws S3Error InvalidRequest
 * when there is none such.
 */
export function checksumTypeOf(algorithm: ChecksumAlgorithm, type: string | undefined): ChecksumType {
  const { types } = ALGORITHMS[algorithm] as Algorithm;
  if (type === undefined) return types[0]!;
  const found = types.find((known) => known === type.toUpperCase());
  if (found) return found;
  const message = `The ${type} checksum type cannot be used with the ${algorithm} checksum algorithm.`;
  throw new S3Error("InvalidRequest", message);
}

/** Returns the checksum of an upload whose parts have these checksums: that of their bytes, and the number of parts. */
export async function compositeChecksum(algorithm: ChecksumAlgorithm, parts: readonly string[]): Promise<string> {
  const running = await startChecksum(algorithm);
  for (const part of parts) running.update(Buffer.from(part, "base64"));
  return `${running.digest()}-${parts.length}`;
}

async function hash(algorithm: string): Promise<Checksum> {
  const running = createHash(algorithm);
  return { update: (bytes) => void running.update(bytes), digest: () => running.digest("base64") };
}

async function wasm(starting: Promise<IHasher>): Promise<Checksum> {
  const running = (await starting).init();
  return {
    update: (bytes) => void running.update(bytes),
    digest: () => Buffer.from(running.digest("binary")).toString("base64"),
  };
}

class Crc32 implements Checksum {
  #value = 0;

  update(bytes: Uint8Array): void {
    this.#value = crc32(bytes, this.#value);
  }

  digest(): string {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(this.#value >>> 0);
    return bytes.toString("base64");
  }
}
