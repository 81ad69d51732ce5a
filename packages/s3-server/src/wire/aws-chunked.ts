/**
 * The `aws-chunked` body encoding: chunks with a length line each, signed or not, and trailers with a checksum.
 *
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
 */
import { createHash } from "node:crypto";
import { S3Error } from "./s3-error.ts";
import { hmac, sameHex, sha256Hex, type SigningContext } from "./signature.ts";

const LINE_BYTES_MAX = 16 * 1024;

/** How to decode a body. */
export interface AwsChunkedOptions {
  /** Present when the chunks are signed. */
  readonly signing: SigningContext | undefined;
  /** Called for every trailer, with its lower-case name. */
  readonly onTrailer: (name: string, value: string) => void;
}

/** Yields the payload of an aws-chunked body. Throws S3Error IncompleteBody or SignatureDoesNotMatch. */
export async function* decodeAwsChunked(
  source: AsyncIterable<Uint8Array>,
  options: AwsChunkedOptions,
): AsyncGenerator<Uint8Array> {
  const input = new ByteReader(source);
  const signer = options.signing && new ChunkSigner(options.signing);
  for (;;) {
    const { bytes, signature } = parseChunkHeader(await input.line());
    const hash = signer && createHash("sha256");
    for (let left = bytes; left > 0;) {
      const part = await input.take(left);
      left -= part.length;
      hash?.update(part);
      yield part;
    }
    if (signer) signer.checkChunk(hash!.digest("hex"), signature);
    if (bytes === 0) break;
    if ((await input.line()) !== "") throw new S3Error("IncompleteBody", "A chunk is longer than it says.");
  }
  await readTrailers(input, signer, options.onTrailer);
}

async function readTrailers(
  input: ByteReader,
  signer: ChunkSigner | undefined,
  onTrailer: AwsChunkedOptions["onTrailer"],
): Promise<void> {
  let signed = "";
  for (let line = await input.line(true); line !== ""; line = await input.line(true)) {
    const at = line.indexOf(":");
    const name = line.slice(0, at).trim().toLowerCase();
    const value = line.slice(at + 1).trim();
    if (name === "x-amz-trailer-signature") {
      signer?.checkTrailer(signed, value);
    } else {
      signed += `${name}:${value}\n`;
      onTrailer(name, value);
    }
  }
}

function parseChunkHeader(line: string): { bytes: number; signature: string } {
  const match = /^([0-9a-fA-F]{1,12})(?:;chunk-signature=([0-9a-f]{64}))?$/.exec(line);
  if (!match) throw new S3Error("IncompleteBody", "A chunk of the aws-chunked body has no length line.");
  return { bytes: Number.parseInt(match[1]!, 16), signature: match[2] ?? "" };
}

/** Checks chunk signatures. Each one covers the signature before it. */
class ChunkSigner {
  readonly #context: SigningContext;
  #previous: string;

  constructor(context: SigningContext) {
    this.#context = context;
    this.#previous = context.signature;
  }

  checkChunk(hash: string, signature: string): void {
    this.#check("AWS4-HMAC-SHA256-PAYLOAD", [sha256Hex(""), hash], signature);
  }

  checkTrailer(lines: string, signature: string): void {
    this.#check("AWS4-HMAC-SHA256-TRAILER", [sha256Hex(lines)], signature);
  }

  #check(algorithm: string, hashes: string[], signature: string): void {
    const { key, date, scope } = this.#context;
    const expected = hmac(key, [algorithm, date, scope, this.#previous, ...hashes].join("\n")).toString("hex");
    if (!sameHex(expected, signature)) {
      throw new S3Error("SignatureDoesNotMatch", "A chunk's signature does not match the one we calculated.");
    }
    this.#previous = signature;
  }
}

/** Reads lines and bytes from a stream. */
class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest = new Uint8Array(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Returns the next line without its CRLF. With `orEnd`, the end of the stream counts as an empty line. */
  async line(orEnd = false): Promise<string> {
    let line = new Uint8Array(0);
    for (;;) {
      if (this.#rest.length === 0 && !(await this.#fill())) {
        if (orEnd && line.length === 0) return "";
        throw new S3Error("IncompleteBody", "The aws-chunked body ends before its last chunk.");
      }
      const at = this.#rest.indexOf(0x0a);
      line = join(line, at < 0 ? this.#rest : this.#rest.subarray(0, at));
      this.#rest = at < 0 ? new Uint8Array(0) : this.#rest.subarray(at + 1);
      if (line.length > LINE_BYTES_MAX)
        throw new S3Error("InvalidRequest", "A line of the aws-chunked body is too long.");
      if (at >= 0) return new TextDecoder().decode(line).replace(/\r$/, "");
    }
  }

  /** Returns at least one byte and at most `max`. */
  async take(max: number): Promise<Uint8Array> {
    if (this.#rest.length === 0 && !(await this.#fill())) {
      throw new S3Error("IncompleteBody", "The aws-chunked body ends inside a chunk.");
    }
    const part = this.#rest.subarray(0, max);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }

  async #fill(): Promise<boolean> {
    const { done, value } = await this.#source.next();
    if (done) return false;
    this.#rest = value as Uint8Array<ArrayBuffer>;
    return this.#rest.length > 0 || this.#fill();
  }
}

function join(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(a.length + b.length);
  whole.set(a);
  whole.set(b, a.length);
  return whole;
}
