/** HTTP byte ranges (RFC 9110, section 14) over an object of known length. */
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";

/** Bytes [start, end) of an object. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Returns the range that a `Range` header asks for, or undefined if the whole object is to be sent: there is no
 * header, it has another unit, it is malformed, or it has several ranges (see `partsAnswer`).
 *
 * @param bytes length of the object.
 * @throws RANGE_UNSATISFIABLE if no byte of the object is in the range.
 */
export function parseRange(header: string | null | undefined, bytes: number): ByteRange | undefined {
  // At least one digit.
  const match = /^\s*bytes\s*=(?!\D*$)\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(header ?? "");
  if (!match) return undefined;
  const [, first = "", last = ""] = match;
  if (first === "") return satisfiable({ start: Math.max(0, bytes - Number(last)), end: bytes }, bytes, header!);
  if (last !== "" && Number(last) < Number(first)) return undefined;
  const end = last === "" ? bytes : Math.min(Number(last) + 1, bytes);
  return satisfiable({ start: Number(first), end }, bytes, header!);
}

/** Returns the `Content-Range` of a 206 for an object of `bytes` bytes. */
export function contentRange(range: ByteRange, bytes: number): string {
  return `bytes ${range.start}-${range.end - 1}/${bytes}`;
}

function satisfiable(range: ByteRange, bytes: number, header: string): ByteRange {
  if (range.start < bytes && range.end > range.start) return range;
  throw new AgaroseError(
    "RANGE_UNSATISFIABLE",
    HAS_MESSAGES && `range ${header.trim()} has no byte of an object of ${bytes} bytes: ask for less`,
    { range: header, bytes },
  );
}
