/** The type of a stored file, by the extension of its key, and whether an object has the same one. */
import mime from "mime";
import { isChecksum, type Described } from "./object-headers.ts";

/** The content type that the extension of a key stands for. */
export function contentTypeOf(key: string): string {
  return mime.getType(key) ?? "application/octet-stream";
}

/** Whether an object is described as a put of `wanted` would describe it. Checksums follow from its bytes. */
export function isDescribedAs(stored: Described, wanted: Described): boolean {
  const textOf = ({ contentType, headers }: Described): string => {
    const own = Object.entries(headers).filter(([name]) => !isChecksum(name));
    // A put adds the character set where it finds it.
    return JSON.stringify([contentType.replace(/; charset=utf-8$/, ""), own.toSorted(([a], [b]) => (a < b ? -1 : 1))]);
  };
  return textOf(stored) === textOf(wanted);
}
