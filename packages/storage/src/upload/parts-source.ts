/** Files that are the parts of one object, as of a multipart upload, so that they need not be joined on disk. */
import { open } from "node:fs/promises";
import { AgaroseError } from "@agarose/core";
import type { Source } from "./file-source.ts";

/** The bytes of files, one after the other. A read throws FILE_UNREADABLE where a file is shorter than its `bytes`. */
export function partsSource(parts: readonly { readonly path: string; readonly bytes: number }[]): Source {
  const read = async (target: Uint8Array, position: number): Promise<number> => {
    let filled = 0;
    let start = 0;
    for (const { path, bytes } of parts) {
      const from = position + filled - start;
      const wanted = Math.min(bytes - from, target.length - filled);
      if (from >= 0 && wanted > 0) {
        await readWhole(path, target.subarray(filled, filled + wanted), from);
        filled += wanted;
      }
      start += bytes;
    }
    return filled;
  };
  return { open: async () => ({ read, close: async () => {} }) };
}

async function readWhole(path: string, target: Uint8Array, position: number): Promise<void> {
  const file = await open(path);
  try {
    for (let filled = 0; filled < target.length;) {
      const { bytesRead } = await file.read(target, filled, target.length - filled, position + filled);
      if (bytesRead === 0) {
        const message = `${path} ends at ${position + filled} bytes: nothing else may change it`;
        throw new AgaroseError("FILE_UNREADABLE", message, { path });
      }
      filled += bytesRead;
    }
  } finally {
    await file.close();
  }
}
