/**
 * A streamed put with a checksum behind its bytes (`aws-chunked` with a CRC-32 trailer).
 *
 * The SDK can do this too, but its encoder has no backpressure: when a region stalls, the whole chunk is in memory.
 * This one is a Transform, which holds its source back.
 */
import { createHash } from "node:crypto";
import { Transform, type TransformCallback } from "node:stream";
import { crc32 } from "node:zlib";
import type { PutObjectCommand } from "@aws-sdk/client-s3";

/** S3 wants at least 8 KiB in every frame but the last. */
const FRAME_BYTES = 64 * 1024;
const TRAILER = "x-amz-checksum-crc32";
const CRLF = "\r\n";

interface HttpRequest {
  headers: Record<string, string>;
  body: unknown;
}

/** Makes `command`, whose body is a stream of exactly `bytes` bytes, send it with a checksum. */
export function sendChecksummed(command: PutObjectCommand, bytes: number): void {
  command.middlewareStack.add(
    (next) => (args) => {
      const request = args.request as HttpRequest;
      request.body = (request.body as NodeJS.ReadableStream).pipe(new ChecksummedBody());
      Object.assign(request.headers, {
        "content-encoding": "aws-chunked",
        "content-length": String(encodedBytes(bytes)),
        "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "x-amz-decoded-content-length": String(bytes),
        "x-amz-trailer": TRAILER,
      });
      return next(args);
    },
    { step: "build", priority: "low", name: "checksummedBody" },
  );
}

/**
 * Makes `command`, whose body is a stream, send it without a checksum, for stores that refuse trailers.
 *
 * @returns a function that returns the MD5 of what was sent, in hex, once the command is done.
 */
export function sendHashed(command: PutObjectCommand): () => string {
  const hash = createHash("md5");
  command.middlewareStack.add(
    (next) => (args) => {
      const request = args.request as HttpRequest;
      const through = new Transform({
        transform(part: Buffer, _encoding, done) {
          hash.update(part);
          done(undefined, part);
        },
      });
      request.body = (request.body as NodeJS.ReadableStream).pipe(through);
      request.headers["x-amz-content-sha256"] = "UNSIGNED-PAYLOAD";
      return next(args);
    },
    { step: "build", priority: "low", name: "hashedBody" },
  );
  return () => hash.digest("hex");
}

/** Length of `bytes` bytes once they are encoded. */
function encodedBytes(bytes: number): number {
  const rest = bytes % FRAME_BYTES;
  const frame = (length: number): number => length.toString(16).length + length + 2 * CRLF.length;
  const frames = Math.floor(bytes / FRAME_BYTES) * frame(FRAME_BYTES) + (rest > 0 ? frame(rest) : 0);
  // A CRC-32 is 8 characters in base64.
  return frames + `0${CRLF}${TRAILER}:`.length + 8 + 2 * CRLF.length;
}

/** The encoder: bytes in, frames and the trailer out. */
class ChecksummedBody extends Transform {
  #crc = 0;
  #held: Buffer[] = [];
  #heldBytes = 0;

  override _transform(part: Buffer, _encoding: string, done: TransformCallback): void {
    this.#crc = crc32(part, this.#crc);
    let at = 0;
    while (this.#heldBytes + part.length - at >= FRAME_BYTES) {
      const end = at + FRAME_BYTES - this.#heldBytes;
      this.#pushFrame([...this.#held, part.subarray(at, end)], FRAME_BYTES);
      this.#held = [];
      this.#heldBytes = 0;
      at = end;
    }
    if (at < part.length) this.#held.push(part.subarray(at));
    this.#heldBytes += part.length - at;
    done();
  }

  override _flush(done: TransformCallback): void {
    if (this.#heldBytes > 0) this.#pushFrame(this.#held, this.#heldBytes);
    const crc = Buffer.alloc(4);
    crc.writeUInt32BE(this.#crc);
    this.push(`0${CRLF}${TRAILER}:${crc.toString("base64")}${CRLF}${CRLF}`);
    done();
  }

  /** Pushes the parts as they are: copies of all bytes would take as long as the checksum. */
  #pushFrame(parts: readonly Buffer[], bytes: number): void {
    this.push(bytes.toString(16) + CRLF);
    for (const part of parts) this.push(part);
    this.push(CRLF);
  }
}
