/** Canonical JSON (RFC 8785): the bytes that a signature covers, whatever order a document's fields arrive in. */
import { isRecord } from "./shape.ts";

/**
 * Serialises a parsed JSON value with sorted field names and no white space. Fields whose value is undefined are
 * omitted.
 *
 * JavaScript already writes numbers and strings as RFC 8785, sections 3.2.2.2 and 3.2.2.3, require.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const fields = Object.keys(value)
    .filter((name) => value[name] !== undefined)
    // The default order is by UTF-16 code units, as section 3.2.3 requires.
    .toSorted()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name])}`);
  return `{${fields.join(",")}}`;
}
