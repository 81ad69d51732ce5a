/**
 * Looks through a file before it is stored: whether its content coding can be undone as browsers undo it, and whether
 * its text is UTF-8, which browsers do not assume.
 */
import { Readable, type Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from "node:zlib";
import { AgaroseError } from "@agarose/core";
import { codingsOf } from "@agarose/core/http";
import type { SourceReader } from "./file-source.ts";
import type { Described } from "./object-headers.ts";

const BLOCK_BYTES = 256 * 1024;
/** Types that browsers show or run as text. JSON is UTF-8 by itself, and XML names its encoding. */
const TEXT = /^(?:text\/(?!xml)|application\/(?:x-)?(?:java|ecma)script)/i;
/** In UTF-16 without a mark, and in the ISO 2022 encodings, text has these, and each byte is ASCII. */
const NO_TEXT_OF_UTF8 = ["\0", "\u001B"];

/**
 * Resolves to what the object is to be described by: text whose bytes are UTF-8 gets `; charset=utf-8`. A type that
 * names a charset is kept, and so is one whose bytes begin with a byte order mark or are in another encoding.
 *
 * @throws CODING_INVALID when the bytes do not follow the content coding that the headers name, or are more than one
 *   compressed stream, of which some browsers read the first alone; FILE_UNREADABLE.
 */
export async function examineContent(
  file: SourceReader,
  { contentType, headers }: Described,
  key: string,
  signal: AbortSignal,
): Promise<Described> {
  const coding = headers["content-encoding"];
  const codings = codingsOf(coding);
  const isText = TEXT.test(contentType) && !/charset\s*=/i.test(contentType);
  if (codings.length === 0 && !isText) return { contentType, headers };
  // An empty body has no coding to undo.
  const first = Buffer.alloc(1);
  if ((await file.read(first, 0)) === 0) return { contentType, headers };
  let bytes = blocksOf(file, signal);
  for (const one of codings) bytes = undone(one, bytes);
  const check = new Utf8Check();
  for await (const part of bytes) if (isText) check.add(part);
  // An unknown coding hides the text.
  const isPlain = codings.length > 0 || coding === undefined || /^\s*(identity\s*)?$/i.test(coding);
  return isText && isPlain && check.isUtf8()
    ? { contentType: `${contentType}; charset=utf-8`, headers }
    : { contentType, headers };

  async function* undone(name: string, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let tail = Buffer.alloc(0);
    let decodedBytes = 0;
    const coded = source[Symbol.asyncIterator]();
    const { value: head } = (await coded.next()) as { value?: Uint8Array };
    const decoder = newDecoder(name, head ?? new Uint8Array());
    const input = async function* (): AsyncGenerator<Uint8Array> {
      for (let part = head; part; part = ((await coded.next()) as { value?: Uint8Array }).value) {
        tail = Buffer.concat([tail, part.subarray(-4)]).subarray(-4);
        yield part;
      }
    };
    // Its error reaches the loop through the decoder.
    const fed = pipeline(Readable.from(input()), decoder).catch(() => {});
    try {
      for await (const part of decoder as AsyncIterable<Buffer>) {
        decodedBytes += part.length;
        yield part;
      }
    } catch (error) {
      if (error instanceof AgaroseError || signal.aborted) throw error;
      throw invalid(key, `they do not follow ${name}: ${(error as Error).message}`, error);
    }
    await fed;
    // A stream of gzip ends with the length of its content modulo 2^32.
    const isGzip = name.endsWith("gzip");
    if (isGzip && tail.length === 4 && tail.readUInt32LE() !== decodedBytes % 2 ** 32) {
      throw invalid(key, "they are several streams of gzip, or have other bytes behind the stream");
    }
  }
}

function invalid(key: string, problem: string, cause?: unknown): AgaroseError {
  return new AgaroseError(
    "CODING_INVALID",
    `the bytes of ${JSON.stringify(key)} cannot be read by every browser, because ${problem}: ` +
      "compress the file again in one stream, or leave out content-encoding",
    { key },
    cause,
  );
}

function newDecoder(coding: string, head: Uint8Array): Duplex {
  const options = { rejectGarbageAfterEnd: true };
  if (coding === "br") return createBrotliDecompress(options);
  if (coding === "zstd") return createZstdDecompress(options);
  if (coding !== "deflate") return createGunzip(options);
  // Browsers accept deflate with the header of zlib and without.
  const [method = 0, flags = 0] = head;
  const isZlib = method % 16 === 8 && (method * 256 + flags) % 31 === 0;
  return isZlib ? createInflate(options) : createInflateRaw(options);
}

async function* blocksOf(file: SourceReader, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for (let position = 0; ;) {
    signal.throwIfAborted();
    const block = Buffer.allocUnsafe(BLOCK_BYTES);
    const length = await file.read(block, position);
    if (length === 0) return;
    position += length;
    yield block.subarray(0, length);
  }
}

/** Whether bytes are text in UTF-8 and in nothing else. */
class Utf8Check {
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #isUtf8 = true;
  #isStart = true;

  add(part: Uint8Array): void {
    if (!this.#isUtf8) return;
    try {
      const text = this.#decoder.decode(part, { stream: true });
      // The mark may come in pieces; then there is no text yet.
      if (this.#isStart && text.startsWith("\uFEFF")) this.#isUtf8 = false;
      if (text !== "") this.#isStart = false;
      if (NO_TEXT_OF_UTF8.some((character) => text.includes(character))) this.#isUtf8 = false;
    } catch {
      this.#isUtf8 = false;
    }
  }

  isUtf8(): boolean {
    try {
      return this.#isUtf8 && this.#decoder.decode() === "";
    } catch {
      return false;
    }
  }
}
