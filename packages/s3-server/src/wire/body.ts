/** Receives a request body into a file, and checks its length, hashes, checksums and signatures. */
import { createHash } from "node:crypto";
import { IncomingMessage } from "node:http";
import { decodeAwsChunked } from "./aws-chunked.ts";
import {
  algorithmNamed,
  algorithmOfHeader,
  checkChecksumForm,
  checksumHeader,
  startChecksum,
  type Checksum,
  type ChecksumAlgorithm,
} from "./checksum.ts";
import type { S3Request } from "./request.ts";
import { S3Error } from "./s3-error.ts";
import type { SigningContext } from "./signature.ts";

/** The facts about a received body. */
export interface ReceivedBody {
  readonly bytes: number;
  /** In hex. */
  readonly md5: string;
  /** Verified checksums of the request, and the one that `also` asked for, by header name. */
  readonly checksums: Record<string, string>;
}

/** A received body in a file. */
export interface BodyFile extends ReceivedBody {
  readonly path: string;
}

/** Where a body goes, such as a file. */
export interface BodyTarget {
  write(part: Uint8Array): Promise<unknown>;
}

/** A request, as it came and as S3 understands it. */
export interface Received extends Pick<S3Request, "headers"> {
  /** The body: that of a request, the file in it, or the bytes of an object that it copies. */
  readonly request: AsyncIterable<Uint8Array>;
  readonly signing: SigningContext | undefined;
}

/** S3's largest single put. */
const BODY_BYTES_MAX = 5 * 1024 ** 3;
/** A client that sends nothing for this long has left. */
const IDLE_MS = 60_000;

/**
 * Writes the payload of a request to `file`.
 *
 * @param also a checksum to calculate even if the client sends none.
 * @throws S3Error IncompleteBody, BadDigest, InvalidDigest, InvalidRequest, MalformedTrailerError,
 *   XAmzContentSHA256Mismatch or SignatureDoesNotMatch when the body is not what the request says. The caller then
 *   discards the file.
 */
export async function receiveBody(
  received: Received,
  file: BodyTarget,
  also?: ChecksumAlgorithm,
): Promise<ReceivedBody> {
  const check = await BodyCheck.of(received.headers, also);
  for await (const part of payloadOf(received, check)) {
    check.update(part);
    await file.write(part);
  }
  return check.finish();
}

/**
 * Returns a small body as text, such as the XML of a request.
 *
 * @param ofBody whether the checksums in its headers are of this body: those of CompleteMultipartUpload are not.
 */
export async function receiveText(received: Received, bytesMax: number, ofBody = true): Promise<string> {
  const checksumless = Object.entries(received.headers).filter(([name]) => ofBody || !algorithmOfHeader(name));
  const check = await BodyCheck.of(Object.fromEntries(checksumless));
  const parts: Uint8Array[] = [];
  for await (const part of payloadOf(received, check)) {
    check.update(part);
    if (check.bytes > bytesMax) throw new S3Error("MalformedXML", "The XML you provided is too long.");
    parts.push(part);
  }
  check.finish();
  return Buffer.concat(parts).toString("utf8");
}

/** Yields the body of a request as it comes. */
export async function* sentParts(request: IncomingMessage): AsyncGenerator<Uint8Array> {
  request.setTimeout(IDLE_MS, () => request.destroy());
  try {
    // A body that is refused in the middle is answered: the end of the loop must not cut the connection.
    yield* request.iterator({ destroyOnReturn: false });
  } finally {
    // A request whose body is complete counts as destroyed, and its socket waits for the answer still.
    request.socket.setTimeout(0);
  }
}

function payloadOf({ request, headers, signing }: Received, check: BodyCheck): AsyncIterable<Uint8Array> {
  const kind = headers["x-amz-content-sha256"] ?? "UNSIGNED-PAYLOAD";
  const parts = request instanceof IncomingMessage ? sentParts(request) : request;
  if (kind === "UNSIGNED-PAYLOAD" || SHA256.test(kind)) return parts;
  if (kind.startsWith("STREAMING-AWS4-ECDSA")) {
    throw new S3Error("NotImplemented", "Signature Version 4A is not supported.");
  }
  const [, isSigned] = /^STREAMING-(?:(AWS4-HMAC-SHA256)-PAYLOAD|UNSIGNED-PAYLOAD)(?:-TRAILER)?$/.exec(kind) ?? [kind];
  if (isSigned === kind) {
    const forms = "UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
    throw new S3Error("InvalidArgument", `x-amz-content-sha256 must be ${forms} or the SHA-256 of the body in hex.`);
  }
  return decodeAwsChunked(parts, {
    signing: isSigned ? signing : undefined,
    onTrailer: (name, value) => check.expectTrailer(name, value),
  });
}

const SHA256 = /^[0-9a-f]{64}$/;

interface Watched {
  readonly algorithm: ChecksumAlgorithm;
  readonly running: Checksum;
  /** The client's value; until it arrives, or if none arrives, its source. */
  expected: string | { readonly from: "trailer" | "nobody" };
}

class BodyCheck {
  bytes = 0;
  readonly #md5 = createHash("md5");
  readonly #sha256;
  readonly #headers: S3Request["headers"];
  readonly #contentMd5: string | undefined;
  readonly #checksums = new Map<string, Watched>();

  private constructor(headers: S3Request["headers"]) {
    this.#headers = headers;
    const payload = headers["x-amz-content-sha256"] ?? "";
    this.#sha256 = SHA256.test(payload) ? { running: createHash("sha256"), expected: payload } : undefined;
    this.#contentMd5 = headers["content-md5"];
    const md5 = Buffer.from(this.#contentMd5 ?? "", "base64");
    if (this.#contentMd5 !== undefined && (md5.length !== 16 || md5.toString("base64") !== this.#contentMd5)) {
      throw new S3Error("InvalidDigest", "The Content-MD5 you specified is not valid.");
    }
  }

  /** Starts what the headers ask for. Throws S3Error InvalidDigest, InvalidRequest or NotImplemented. */
  static async of(headers: S3Request["headers"], also?: ChecksumAlgorithm): Promise<BodyCheck> {
    const check = new BodyCheck(headers);
    for (const [name, value] of Object.entries(headers)) {
      const algorithm = algorithmOfHeader(name);
      if (!algorithm) continue;
      checkChecksumForm(algorithm, value);
      await check.#watch(algorithm, value);
    }
    for (const name of (headers["x-amz-trailer"] ?? "").split(",").map((trailer) => trailer.trim())) {
      if (name === "") continue;
      const algorithm = algorithmOfHeader(name);
      if (!algorithm) throw new S3Error("InvalidRequest", `The trailer ${name} is not supported.`);
      await check.#watch(algorithm, { from: "trailer" });
    }
    if (check.#checksums.size > 1) {
      const message = "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.";
      throw new S3Error("InvalidRequest", message);
    }
    const named = headers["x-amz-sdk-checksum-algorithm"];
    if (named !== undefined && !check.#checksums.has(checksumHeader(algorithmNamed(named)))) {
      const message = `x-amz-sdk-checksum-algorithm is ${named}, but no such checksum is in a header or trailer.`;
      throw new S3Error("InvalidRequest", message);
    }
    if (also && !check.#checksums.has(checksumHeader(also))) await check.#watch(also, { from: "nobody" });
    return check;
  }

  update(part: Uint8Array): void {
    this.bytes += part.length;
    if (this.bytes > BODY_BYTES_MAX) throw new S3Error("EntityTooLarge", `An upload may have ${BODY_BYTES_MAX} bytes.`);
    this.#md5.update(part);
    this.#sha256?.running.update(part);
    for (const { running } of this.#checksums.values()) running.update(part);
  }

  /** Throws S3Error MalformedTrailerError for one that was not announced, or that has no form of a checksum. */
  expectTrailer(name: string, value: string): void {
    const watched = this.#checksums.get(name);
    if (typeof watched?.expected !== "object" || watched.expected.from !== "trailer") {
      throw new S3Error("MalformedTrailerError", `The trailer ${name} was not announced by x-amz-trailer.`);
    }
    checkChecksumForm(watched.algorithm, value);
    watched.expected = value;
  }

  finish(): ReceivedBody {
    const decoded = this.#headers["x-amz-decoded-content-length"];
    if (decoded !== undefined && Number(decoded) !== this.bytes) {
      throw new S3Error("IncompleteBody", `The body has ${this.bytes} bytes, but its header declares ${decoded}.`);
    }
    if (this.#sha256 && this.#sha256.running.digest("hex") !== this.#sha256.expected) {
      throw new S3Error("XAmzContentSHA256Mismatch", "The provided x-amz-content-sha256 is not that of the body.");
    }
    const md5 = this.#md5.digest();
    if (this.#contentMd5 !== undefined && this.#contentMd5 !== md5.toString("base64")) {
      throw new S3Error("BadDigest", "The Content-MD5 you specified is not that of the body.");
    }
    const checksums: Record<string, string> = {};
    for (const [name, { running, expected }] of this.#checksums) {
      const actual = running.digest();
      if (typeof expected === "object" && expected.from === "trailer") {
        throw new S3Error("MalformedTrailerError", `The trailer ${name} was announced and did not come.`);
      }
      if (typeof expected === "string" && actual !== expected) {
        throw new S3Error("BadDigest", `The ${name} you specified is not that of the body.`);
      }
      checksums[name] = actual;
    }
    return { bytes: this.bytes, md5: md5.toString("hex"), checksums };
  }

  async #watch(algorithm: ChecksumAlgorithm, expected: Watched["expected"]): Promise<void> {
    this.#checksums.set(checksumHeader(algorithm), { algorithm, running: await startChecksum(algorithm), expected });
  }
}
