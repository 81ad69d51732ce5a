/** Reads `multipart/form-data` (RFC 7578) up to its file, whose bytes stream. Nothing else of it is held for long. */
import { isUtf8 } from "node:buffer";
import { S3Error } from "./s3-error.ts";

/** A form whose fields have come, and whose file is coming. */
export interface UploadForm {
  /** By lower-case name. */
  readonly fields: Map<string, string>;
  /** Without the folders that some browsers send. */
  readonly fileName: string;
  /** Throws S3Error MalformedPOSTRequest unless the form ends as it should. */
  readonly file: AsyncIterable<Uint8Array>;
}

/** The limit of S3 for everything beside the file. */
const FIELD_BYTES_MAX = 20 * 1024;
const BOUNDARY = /^multipart\/form-data\s*;(?:.*;)?\s*boundary=(?:"([^"]+)"|([^\s";]+))/i;

/** Whether a request has a form. */
export function isForm(contentType = ""): boolean {
  return BOUNDARY.test(contentType);
}

/**
 * Reads a form until its file begins. Fields behind the file count for nothing, as in S3.
 *
 * @throws S3Error PreconditionFailed for another content type; MalformedPOSTRequest, MaxPostPreDataLengthExceeded, or
 *   InvalidArgument for a field that comes twice and for a form without a file.
 */
export async function readForm(contentType = "", body: AsyncIterable<Uint8Array>): Promise<UploadForm> {
  const [, quoted, plain] = BOUNDARY.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) {
    throw new S3Error("PreconditionFailed", "Bucket POST must be of the enclosure-type multipart/form-data.");
  }
  const mark = `\r\n--${boundary}`;
  const reader = new FormReader(body);
  await reader.text(mark);
  const fields = new Map<string, string>();
  while (await reader.hasPart()) {
    const parameters = parametersOf(await reader.text("\r\n\r\n"));
    const name = parameters.get("name")?.toLowerCase();
    if (name === undefined) throw malformed("a part of it has no name");
    if (name === "file") {
      const fileName = (parameters.get("filename") ?? "").replace(/^.*[/\\]/s, "");
      return { fields, fileName, file: reader.file(mark) };
    }
    if (fields.has(name)) throw new S3Error("InvalidArgument", `The field ${name} comes more than once.`);
    fields.set(name, await reader.text(mark));
  }
  throw new S3Error("InvalidArgument", "POST requires exactly one file upload per request.");
}

function parametersOf(head: string): Map<string, string> {
  const [, written = ""] = /^content-disposition:\s*form-data\b(.*)$/im.exec(head) ?? [];
  const found = written.matchAll(/;\s*([a-z*]+)=(?:"((?:\\"|[^"])*)"|([^\s";]+))/gi);
  return new Map(
    [...found].map(([, name = "", quoted, plain = ""]) => {
      return [name.toLowerCase(), quoted?.replaceAll('\\"', '"') ?? plain];
    }),
  );
}

class FormReader {
  readonly #source: AsyncIterator<Uint8Array>;
  /** The first delimiter may stand at the very beginning. */
  #rest: Buffer = Buffer.from("\r\n");
  #fieldBytes = 0;

  constructor(body: AsyncIterable<Uint8Array>) {
    this.#source = body[Symbol.asyncIterator]();
  }

  /** Whether another part begins behind the delimiter that was read. */
  async hasPart(): Promise<boolean> {
    while (this.#rest.length < 2) await this.#fill();
    const end = this.#rest.toString("latin1", 0, 2);
    this.#rest = this.#rest.subarray(2);
    if (end !== "\r\n" && end !== "--") throw malformed("its boundary is followed by something else");
    return end === "\r\n";
  }

  /** Returns the text before `mark`, and goes behind that. */
  async text(mark: string): Promise<string> {
    const parts: Uint8Array[] = [];
    for await (const part of this.#before(mark)) {
      this.#count(part);
      parts.push(part);
    }
    const bytes = Buffer.concat(parts);
    if (!isUtf8(bytes)) throw malformed("a field of it is not UTF-8");
    return bytes.toString();
  }

  /** Yields the bytes before `mark`, and reads the rest of the form. */
  async *file(mark: string): AsyncGenerator<Uint8Array> {
    try {
      yield* this.#before(mark);
      while (await this.hasPart()) await this.text(mark);
      for (let next = await this.#source.next(); !next.done; next = await this.#source.next()) this.#count(next.value);
    } finally {
      await this.#source.return?.();
    }
  }

  async *#before(mark: string): AsyncGenerator<Uint8Array> {
    for (;;) {
      const at = this.#rest.indexOf(mark);
      // A mark may begin in these bytes and end in the next ones.
      const end = at < 0 ? Math.max(0, this.#rest.length - mark.length + 1) : at;
      const part = this.#rest.subarray(0, end);
      this.#rest = this.#rest.subarray(at < 0 ? end : at + mark.length);
      if (part.length > 0) yield part;
      if (at >= 0) return;
      await this.#fill();
    }
  }

  #count({ length }: Uint8Array): void {
    this.#fieldBytes += length;
    if (this.#fieldBytes <= FIELD_BYTES_MAX) return;
    const message = `A form may have at most ${FIELD_BYTES_MAX} bytes besides its file.`;
    throw new S3Error("MaxPostPreDataLengthExceeded", message);
  }

  async #fill(): Promise<void> {
    const { done, value } = await this.#source.next();
    if (done) throw malformed("it ends early");
    this.#rest = Buffer.concat([this.#rest, value]);
  }
}

function malformed(why: string): S3Error {
  return new S3Error("MalformedPOSTRequest", `The body is not well-formed multipart/form-data: ${why}.`);
}
