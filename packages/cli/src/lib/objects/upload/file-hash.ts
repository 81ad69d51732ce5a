/**
 * The first pass of a put: the length and the SHA-256 of the file, from which its version follows.
 */
import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { AgaroseError } from "@agarose/core";

const BLOCK_BYTES = 1024 * 1024;

/** The length of a file in bytes, and its SHA-256. */
export interface FileHash {
  readonly bytes: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

/** Reads the whole file once. Throws FILE_UNREADABLE. */
export async function hashFile(
  file: FileHandle,
  signal: AbortSignal,
  onBytes: (bytes: number) => void,
): Promise<FileHash> {
  const hash = createHash("sha256");
  const block = Buffer.allocUnsafe(BLOCK_BYTES);
  let bytes = 0;
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead } = await readAt(file, block, bytes);
    if (bytesRead === 0) return { bytes, sha256: hash.digest("hex") };
    hash.update(block.subarray(0, bytesRead));
    bytes += bytesRead;
    onBytes(bytesRead);
  }
}

/** Fills `target` from `position` on. Reads less only at the end of the file. */
export async function readAt(file: FileHandle, target: Uint8Array, position: number): Promise<{ bytesRead: number }> {
  let filled = 0;
  while (filled < target.length) {
    const { bytesRead } = await file.read(target, filled, target.length - filled, position + filled).catch((error) => {
      throw new AgaroseError("FILE_UNREADABLE", `the file cannot be read: ${(error as Error).message}`, {}, error);
    });
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return { bytesRead: filled };
}
