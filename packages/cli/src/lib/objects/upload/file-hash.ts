/**
 * The first pass of a put: the length and the SHA-256 of the file, from which its version follows.
 */
import { createHash } from "node:crypto";
import type { SourceReader } from "./file-source.ts";

const BLOCK_BYTES = 1024 * 1024;

/** The length of a file in bytes, and its SHA-256. */
export interface FileHash {
  readonly bytes: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

/** Reads the whole file once. Throws FILE_UNREADABLE, or the reason of an aborted `signal`. */
export async function hashFile(
  file: SourceReader,
  signal: AbortSignal,
  onBytes: (bytes: number) => void,
): Promise<FileHash> {
  const hash = createHash("sha256");
  const block = Buffer.allocUnsafe(BLOCK_BYTES);
  let bytes = 0;
  for (;;) {
    signal.throwIfAborted();
    const bytesRead = await file.read(block, bytes);
    if (bytesRead === 0) return { bytes, sha256: hash.digest("hex") };
    hash.update(block.subarray(0, bytesRead));
    bytes += bytesRead;
    onBytes(bytesRead);
  }
}
