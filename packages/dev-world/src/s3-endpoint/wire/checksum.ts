/** The checksums that a client may send with an object, by header name. */
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { S3Error } from "./s3-error.ts";

/** A running checksum. */
export interface Checksum {
  update(bytes: Uint8Array): void;
  /** In base64. */
  digest(): string;
}

const CHECKSUM_PREFIX = "x-amz-checksum-";

/** Returns a checksum for the header or trailer `name` (`x-amz-checksum-crc32`, …). Undefined for other headers. */
export function checksumFor(name: string): Checksum | undefined {
  if (!name.startsWith(CHECKSUM_PREFIX)) return undefined;
  switch (name.slice(CHECKSUM_PREFIX.length)) {
    case "crc32":
      return new Crc((bytes, value) => crc32(bytes, value));
    case "crc32c":
      return new Crc(crc32c);
    case "sha1":
      return hash("sha1");
    case "sha256":
      return hash("sha256");
    case "mode":
    case "algorithm":
    case "type":
      return undefined;
    default:
      throw new S3Error("NotImplemented", `${name} is not supported: crc32, crc32c, sha1 and sha256 are.`);
  }
}

function hash(algorithm: string): Checksum {
  const running = createHash(algorithm);
  return { update: (bytes) => void running.update(bytes), digest: () => running.digest("base64") };
}

class Crc implements Checksum {
  readonly #step: (bytes: Uint8Array, value: number) => number;
  #value = 0;

  constructor(step: (bytes: Uint8Array, value: number) => number) {
    this.#step = step;
  }

  update(bytes: Uint8Array): void {
    this.#value = this.#step(bytes, this.#value);
  }

  digest(): string {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(this.#value >>> 0);
    return bytes.toString("base64");
  }
}

/** CRC-32C (Castagnoli, reflected polynomial 0x82F63B78). */
function crc32c(bytes: Uint8Array, value: number): number {
  let crc = ~value;
  for (const byte of bytes) crc = (crc >>> 8) ^ CRC32C_TABLE[(crc ^ byte) & 0xff]!;
  return ~crc >>> 0;
}

const CRC32C_TABLE = Int32Array.from({ length: 256 }, (_, n) => {
  let crc = n;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});
