/** The bytes that a put stores, wherever they come from. */
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
      const reader = new FileReader(file);
      return bytes <= HELD_BYTES_MAX ? hold(reader, bytes) : reader;
    },
  };
}

async function hold(file: FileReader, bytes: number): Promise<SourceReader> {
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

class FileReader implements SourceReader {
  readonly #file: FileHandle;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  async read(target: Uint8Array, position: number): Promise<number> {
    let filled = 0;
    while (filled < target.length) {
      const bytesRead = await this.#readOnce(target, filled, position + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return filled;
  }

  async state(): Promise<FileState> {
    const { size, mtimeNs, ctimeNs } = await this.#file.stat({ bigint: true }).catch(failRead);
    const mark = `${size} ${mtimeNs} ${ctimeNs}`;
    return { bytes: Number(size), modifiedMs: Number(mtimeNs / 1_000_000n), mark };
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #readOnce(target: Uint8Array, offset: number, position: number): Promise<number> {
    return (await this.#file.read(target, offset, target.length - offset, position).catch(failRead)).bytesRead;
  }
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
