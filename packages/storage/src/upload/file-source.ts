/** The bytes that a put stores, wherever they come from. */
import { createHash } from "node:crypto";
import { open, type FileHandle } from "node:fs/promises";
import { AgaroseError } from "@agarose/core";
import { withDescriptors } from "../files/descriptors.ts";
import { unreadable } from "../files/file-errors.ts";

/** Bytes to store. A put opens them once and may read them from the start several times, so they must not change. */
export interface Source {
  /** Throws FILE_UNREADABLE. */
  open(): Promise<SourceReader>;
}

/** The length of a file in bytes, and its SHA-256. */
export interface FileHash {
  readonly bytes: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

/** The attributes of a file in its file system. */
export interface FileState {
  readonly bytes: number;
  /** The time of its last change. */
  readonly modifiedMs: number;
  /**
   * Length and times. Every change gives it another value, but for one in the moment of the change before, which may be
   * 2 seconds long, and for those of mapped memory that the disk does not have yet.
   */
  readonly mark: string;
}

/** An open source. */
export interface SourceReader {
  /** Its length and hash, where they are known: then nothing is read to find them out. The upload checks them. */
  readonly known?: FileHash;
  /** The present attributes in the file system. It shows a put a change without a second pass. FILE_UNREADABLE. */
  state?(): Promise<FileState>;
  /** Fills `target` from `position` on, and returns how many bytes it read: fewer only at the end. FILE_UNREADABLE. */
  read(target: Uint8Array, position: number): Promise<number>;
  close(): Promise<void>;
}

/** Bytes in memory. They must not change until the put that reads them has ended. */
export function bytesSource(bytes: Uint8Array): Source {
  const reader: SourceReader = {
    async read(target, position) {
      const part = bytes.subarray(position, position + target.length);
      target.set(part);
      return part.length;
    },
    async close() {},
  };
  return { open: async () => reader };
}

/** A file up to this long is read once, into memory: of many small ones, each call takes as long as the work. */
const HELD_BYTES_MAX = 32 * 1024;

/** The file at `path`. */
export function fileSource(path: string): Source {
  return {
    async open() {
      const { file, bytes } = await openFile(path);
      const reader = readerOf(file);
      return bytes <= HELD_BYTES_MAX ? hold(reader, bytes) : reader;
    },
  };
}

async function hold(file: SourceReader, bytes: number): Promise<SourceReader> {
  try {
    const content = Buffer.allocUnsafe(bytes + 1);
    const bytesRead = await file.read(content, 0);
    // It is being written, or is one whose length the system does not know.
    if (bytesRead !== bytes) return file;
    await file.close();
    return await bytesSource(content.subarray(0, bytes)).open();
  } catch (error) {
    await file.close();
    throw error;
  }
}

function readerOf(file: FileHandle): SourceReader {
  return {
    async read(target, position) {
      let filled = 0;
      while (filled < target.length) {
        const left = target.length - filled;
        const { bytesRead } = await file.read(target, filled, left, position + filled).catch(failRead);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
      return filled;
    },
    async state() {
      const { size, mtimeNs, ctimeNs } = await file.stat({ bigint: true }).catch(failRead);
      const mark = `${size} ${mtimeNs} ${ctimeNs}`;
      return { bytes: Number(size), modifiedMs: Number(mtimeNs / 1_000_000n), mark };
    },
    close: () => file.close(),
  };
}

function failRead(error: Error): never {
  throw new AgaroseError("FILE_UNREADABLE", `the file cannot be read: ${error.message}`, {}, error);
}

async function openFile(path: string): Promise<{ readonly file: FileHandle; readonly bytes: number }> {
  let file: FileHandle | undefined;
  try {
    file = await withDescriptors(() => open(path));
    const stats = await file.stat();
    if (stats.isFile()) return { file, bytes: stats.size };
  } catch (error) {
    await file?.close();
    throw new AgaroseError("FILE_UNREADABLE", unreadable(path, error), { path }, error);
  }
  await file.close();
  throw new AgaroseError("FILE_UNREADABLE", `${path} is not a file: put a file, a folder or - for stdin`, { path });
}

const BLOCK_BYTES = 1024 * 1024;
/** A small file must not take a large block: thousands of them make the garbage collector busy. */
const FIRST_BLOCK_BYTES = 64 * 1024;

/** The error of a file that was replaced or written while it was read. */
export function hasChanged(key: string): AgaroseError {
  const message = `the file of ${JSON.stringify(key)} changed during the put: put it again`;
  return new AgaroseError("FILE_UNREADABLE", message, { key });
}

/** The bytes of a small file. Throws FILE_UNREADABLE when it is not the one that was hashed. */
export async function readWhole(file: SourceReader, key: string, { bytes, sha256 }: FileHash): Promise<Uint8Array> {
  // One byte more than expected shows a file that has grown.
  const target = Buffer.alloc(bytes + 1);
  const content = target.subarray(0, await file.read(target, 0));
  const actual = createHash("sha256").update(content).digest("hex");
  if (actual === sha256) return content;
  throw new AgaroseError(
    "FILE_UNREADABLE",
    `the file of ${JSON.stringify(key)} changed during the put (SHA-256 ${sha256}, then ${actual}): put it again`,
    { key, expected: sha256, actual },
  );
}

/** The SHA-256 of the file at `path`. FILE_UNREADABLE, or the reason of an aborted `signal`. */
export async function sha256Of(path: string, signal: AbortSignal): Promise<string> {
  const reader = await fileSource(path).open();
  try {
    return (await hashFile(reader, signal, () => {})).sha256;
  } finally {
    await reader.close();
  }
}

/** Reads the whole file once. Throws FILE_UNREADABLE, or the reason of an aborted `signal`. */
export async function hashFile(
  file: SourceReader,
  signal: AbortSignal,
  onBytes: (bytes: number) => void,
): Promise<FileHash> {
  const hash = createHash("sha256");
  let block = Buffer.allocUnsafe(FIRST_BLOCK_BYTES);
  let bytes = 0;
  for (;;) {
    signal.throwIfAborted();
    const bytesRead = await file.read(block, bytes);
    if (bytesRead === 0) return { bytes, sha256: hash.digest("hex") };
    hash.update(block.subarray(0, bytesRead));
    bytes += bytesRead;
    onBytes(bytesRead);
    if (bytesRead === FIRST_BLOCK_BYTES) block = Buffer.allocUnsafe(BLOCK_BYTES);
  }
}

/** The bytes of files, one after the other. A read throws FILE_UNREADABLE where a file is shorter than its `bytes`. */
export function partsSource(parts: readonly { readonly path: string; readonly bytes: number }[]): Source {
  const read = async (target: Uint8Array, position: number): Promise<number> => {
    let filled = 0;
    let start = 0;
    for (const { path, bytes } of parts) {
      const from = position + filled - start;
      const wanted = Math.min(bytes - from, target.length - filled);
      if (from >= 0 && wanted > 0) {
        await readPart(path, target.subarray(filled, filled + wanted), from);
        filled += wanted;
      }
      start += bytes;
    }
    return filled;
  };
  return { open: async () => ({ read, close: async () => {} }) };
}

async function readPart(path: string, target: Uint8Array, position: number): Promise<void> {
  const file = readerOf(await open(path));
  try {
    const bytes = await file.read(target, position);
    if (bytes === target.length) return;
    const message = `${path} ends at ${position + bytes} bytes: nothing else may change it`;
    throw new AgaroseError("FILE_UNREADABLE", message, { path });
  } finally {
    await file.close();
  }
}
