/**
 * Which files were equal to which objects, in a file, so that a later run asks neither the disk nor the buckets again.
 *
 * A file counts as unchanged while its length, its times and its inode are those that were noted, as Git's index does
 * it. An object counts as unchanged while the regions list its manifest with the ETag that was noted.
 *
 * The file has a line for each pair, in the order in which buckets list keys, so that reading and writing it take
 * constant memory.
 */
import type { Stats } from "node:fs";
import { open } from "node:fs/promises";
import { createInterface, type Interface } from "node:readline";
import type { Readable } from "node:stream";
import { keyName } from "@agarose/core/format";
import { writeWholeFile, type WritePart } from "../files/whole-file.ts";
import { jsonIn } from "../config/json.ts";

/** A file and an object that were equal. */
export interface Known {
  /** `signatureOf` the file. */
  readonly file: string;
  readonly etag: string;
}

/** The attributes that change with the content of a file. */
export type FileStatus = Pick<Stats, "size" | "mtimeMs" | "ctimeMs" | "ino">;

/** A file that was written so shortly before may be written again without another time. */
const SETTLED_MS = 2_000;
/** Lines are written together. */
const WRITTEN_CHARACTERS = 64 * 1024;

type Line = readonly [key: string, file: string, etag: string];

/** Pairs of files and objects that were equal. Without a path, it knows and keeps nothing. */
export class KnownEqual {
  readonly #input: Readable | undefined;
  readonly #interface: Interface | undefined;
  readonly #lines: AsyncIterator<string> | undefined;
  /** The next pair of the run before. */
  #next: Line | undefined;
  /** Lines that are not written yet. */
  #text: string;
  readonly #write = Promise.withResolvers<WritePart>();
  readonly #isComplete = Promise.withResolvers<void>();
  readonly #saved: Promise<void> | undefined;

  private constructor(path: string | undefined, sync: string, input: Readable | undefined) {
    this.#input = input;
    this.#interface = input && createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
    this.#lines = this.#interface?.[Symbol.asyncIterator]();
    this.#text = headOf(sync);
    if (path === undefined) return;
    this.#saved = writeWholeFile(path, async (write) => {
      this.#write.resolve(write);
      await this.#isComplete.promise;
    });
    // `save` has the failure: a sync does not end for what only the next one needs.
    for (const { promise } of [this.#write, this.#isComplete]) promise.catch(() => {});
    this.#saved.catch(this.#write.reject);
  }

  /**
   * Opens the file at `path`. One that is absent, damaged or of another sync is as an empty one. Who has opened it must
   * call `save` or `discard`.
   */
  static async open(path: string | undefined, sync: string): Promise<KnownEqual> {
    const file = path === undefined ? undefined : await open(path).catch(() => undefined);
    const known = new KnownEqual(path, sync, file?.createReadStream());
    const head = await known.#lines?.next().catch(() => undefined);
    if (`${head?.value}\n` === headOf(sync)) await known.#advance();
    return known;
  }

  /** The equal pairs of the previous run. Keys must be in the order in which buckets list them. */
  async find(key: string): Promise<Known | undefined> {
    const place = keyName(key);
    while (this.#next && keyName(this.#next[0]) < place) await this.#advance();
    if (this.#next?.[0] !== key) return undefined;
    const [, file, etag] = this.#next;
    return { file, etag };
  }

  /** Notes a pair for the next run, in the same order. */
  async keep(key: string, { file, etag }: Known): Promise<void> {
    if (!this.#saved) return;
    const line: Line = [key, file, etag];
    this.#text += `${JSON.stringify(line)}\n`;
    if (this.#text.length > WRITTEN_CHARACTERS) await this.#flush();
  }

  /** Keeps what this run has noted. DISK_FULL or USAGE. */
  async save(): Promise<void> {
    this.#close();
    if (!this.#saved) return;
    await this.#flush();
    this.#isComplete.resolve();
    await this.#saved;
  }

  /** Leaves the file as it was. */
  async discard(cause: unknown): Promise<void> {
    this.#close();
    if (!this.#saved) return;
    this.#isComplete.reject(cause);
    await this.#saved.catch(() => {});
  }

  #close(): void {
    this.#interface?.close();
    this.#input?.destroy();
  }

  async #flush(): Promise<void> {
    const text = this.#text;
    this.#text = "";
    try {
      await (
        await this.#write.promise
      )(Buffer.from(text));
    } catch (error) {
      this.#isComplete.reject(error);
    }
  }

  async #advance(): Promise<void> {
    const { value = "" } = (await this.#lines!.next().catch(() => undefined)) ?? {};
    this.#next = lineIn(value as string);
  }
}

/** Whether a file and the object with this ETag were equal. */
export function areKnown(known: Known | undefined, file: FileStatus, etag: string | undefined): known is Known {
  return known !== undefined && etag === known.etag && known.file === signatureOf(file);
}

/**
 * The note about a file and an object that are equal. `file` has the file's attributes at `readMs`, before it was
 * read.
 */
export function knownOf(file: FileStatus, etag: string | undefined, readMs: number): Known | undefined {
  if (etag === undefined || Math.max(file.mtimeMs, file.ctimeMs) > readMs - SETTLED_MS) return undefined;
  return { file: signatureOf(file), etag };
}

/** The part of what `stat` returns that a sync holds. */
export function statusOf({ size, mtimeMs, ctimeMs, ino }: Stats): FileStatus {
  return { size, mtimeMs, ctimeMs, ino };
}

/** A status as text, by which two are compared. */
export function signatureOf({ size, mtimeMs, ctimeMs, ino }: FileStatus): string {
  return `${size} ${mtimeMs} ${ctimeMs} ${ino}`;
}

/** The first line says what was compared: another sync must not use the rest. */
function headOf(sync: string): string {
  return `${JSON.stringify({ agarose: "sync", sync })}\n`;
}

function lineIn(text: string): Line | undefined {
  const line = jsonIn(text);
  const isLine = Array.isArray(line) && line.length === 3 && line.every((part) => typeof part === "string");
  return isLine ? (line as unknown as Line) : undefined;
}
