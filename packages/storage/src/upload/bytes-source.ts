/** Bytes in memory as the source of a put. */
import type { Source, SourceReader } from "./file-source.ts";

/** `bytes` must not change until the put that reads them has ended. */
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
