/** The first pass of a put: the length and the SHA-256 of the file, from which its version follows. */
import { createHash } from "node:crypto";
import { AgaroseError } from "@agarose/core";
import { fileSource, type FileHash, type SourceReader } from "./file-source.ts";

const BLOCK_BYTES = 1024 * 1024;
/** A small file must not take a large block: thousands of them make the garbage collector busy. */
const FIRST_BLOCK_BYTES = 64 * 1024;

/** Base64 of a small file. Throws FILE_UNREADABLE when it is not the one that was hashed. */
export async function readWhole(file: SourceReader, key: string, { bytes, sha256 }: FileHash): Promise<string> {
  // One byte more than expected shows a file that has grown.
  const target = Buffer.alloc(bytes + 1);
  const content = target.subarray(0, await file.read(target, 0));
  const actual = createHash("sha256").update(content).digest("hex");
  if (actual === sha256) return content.toString("base64");
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
