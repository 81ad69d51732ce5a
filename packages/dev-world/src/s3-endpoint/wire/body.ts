/** Receives a request body into a file, and checks its length, hashes, checksums and signatures. */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { decodeAwsChunked } from "./aws-chunked.ts";
import { checksumFor, type Checksum } from "./checksum.ts";
import { S3Error } from "./s3-error.ts";
import type { SigningContext } from "./signature.ts";

/** What a received body turned out to be. */
export interface ReceivedBody {
  readonly bytes: number;
  /** In hex. */
  readonly md5: string;
  /** Verified checksums of the request, by header name. */
  readonly checksums: Record<string, string>;
}

/** Where a body goes, such as a file. */
export interface BodyTarget {
  write(part: Uint8Array): Promise<unknown>;
}

/** S3's largest single put. */
const BODY_BYTES_MAX = 5 * 1024 ** 3;

/**
 * Writes the payload of `request` to `file`.
 *
 * @throws S3Error IncompleteBody, BadDigest, XAmzContentSHA256Mismatch or SignatureDoesNotMatch when the body is not
 *   what the request says. The caller then discards the file.
 */
export async function receiveBody(
  request: IncomingMessage,
  signing: SigningContext | undefined,
  file: BodyTarget,
): Promise<ReceivedBody> {
  const check = new BodyCheck(request);
  for await (const part of payloadOf(request, signing, check)) {
    check.update(part);
    await file.write(part);
  }
  return check.finish();
}

/** Returns a small body as text, such as the XML of a request. */
export async function receiveText(
  request: IncomingMessage,
  signing: SigningContext | undefined,
  bytesMax: number,
): Promise<string> {
  const check = new BodyCheck(request);
  const parts: Uint8Array[] = [];
  for await (const part of payloadOf(request, signing, check)) {
    check.update(part);
    if (check.bytes > bytesMax) throw new S3Error("MalformedXML", "The XML you provided is too long.");
    parts.push(part);
  }
  check.finish();
  return Buffer.concat(parts).toString("utf8");
}

function payloadOf(
  request: IncomingMessage,
  signing: SigningContext | undefined,
  check: BodyCheck,
): AsyncIterable<Uint8Array> {
  const kind = String(request.headers["x-amz-content-sha256"] ?? "UNSIGNED-PAYLOAD");
  // A body that is refused in the middle is answered: the end of the loop must not cut the connection.
  const parts = request.iterator({ destroyOnReturn: false });
  if (!kind.startsWith("STREAMING-")) return parts;
  if (kind.startsWith("STREAMING-AWS4-ECDSA")) {
    throw new S3Error("NotImplemented", "Signature Version 4A is not supported.");
  }
  const chunksSigned = kind.startsWith("STREAMING-AWS4-HMAC-SHA256");
  return decodeAwsChunked(parts, {
    signing: chunksSigned ? signing : undefined,
    onTrailer: (name, value) => check.expectTrailer(name, value),
  });
}

class BodyCheck {
  bytes = 0;
  readonly #md5 = createHash("md5");
  readonly #sha256;
  readonly #headers: IncomingMessage["headers"];
  /** Running checksums and their expected values. A trailer brings the value only at the end. */
  readonly #checksums = new Map<string, { running: Checksum; expected: string | undefined }>();

  constructor({ headers }: IncomingMessage) {
    this.#headers = headers;
    const payload = String(headers["x-amz-content-sha256"] ?? "");
    this.#sha256 = /^[0-9a-f]{64}$/.test(payload) ? { running: createHash("sha256"), expected: payload } : undefined;
    for (const [name, value] of Object.entries(headers)) this.#watch(name, String(value));
    for (const name of String(headers["x-amz-trailer"] ?? "").split(","))
      this.#watch(name.trim().toLowerCase(), undefined);
  }

  update(part: Uint8Array): void {
    this.bytes += part.length;
    if (this.bytes > BODY_BYTES_MAX) throw new S3Error("EntityTooLarge", `An upload may have ${BODY_BYTES_MAX} bytes.`);
    this.#md5.update(part);
    this.#sha256?.running.update(part);
    for (const { running } of this.#checksums.values()) running.update(part);
  }

  expectTrailer(name: string, value: string): void {
    const watched = this.#checksums.get(name);
    if (watched) watched.expected = value;
  }

  finish(): ReceivedBody {
    const decoded = this.#headers["x-amz-decoded-content-length"];
    if (decoded !== undefined && Number(decoded) !== this.bytes) {
      throw new S3Error("IncompleteBody", `The body has ${this.bytes} bytes, its header says ${String(decoded)}.`);
    }
    if (this.#sha256 && this.#sha256.running.digest("hex") !== this.#sha256.expected) {
      throw new S3Error("XAmzContentSHA256Mismatch", "The provided x-amz-content-sha256 is not that of the body.");
    }
    const md5 = this.#md5.digest();
    const contentMd5 = this.#headers["content-md5"];
    if (contentMd5 !== undefined && contentMd5 !== md5.toString("base64")) {
      throw new S3Error("BadDigest", "The Content-MD5 you specified is not that of the body.");
    }
    const checksums: Record<string, string> = {};
    for (const [name, { running, expected }] of this.#checksums) {
      const actual = running.digest();
      if (actual !== expected) throw new S3Error("BadDigest", `The ${name} you specified is not that of the body.`);
      checksums[name] = actual;
    }
    return { bytes: this.bytes, md5: md5.toString("hex"), checksums };
  }

  #watch(name: string, expected: string | undefined): void {
    const running = checksumFor(name);
    if (running) this.#checksums.set(name, { running, expected });
  }
}
