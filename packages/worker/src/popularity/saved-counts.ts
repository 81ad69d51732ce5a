/** The counts of a running period as one row in a shard's SQLite. Pure. */

/** Less than a row of `SqlBlob` holds: 16,384 keys of 50 characters, or a thousand of the longest. */
export const SAVED_BYTES_MAX = 1_000_000;

/** Returns the most requested keys with their counts, as many as fit into `bytesMax` bytes of JSON. */
export function encodeCounts(counts: ReadonlyMap<string, number>, bytesMax = SAVED_BYTES_MAX): Uint8Array {
  const encoder = new TextEncoder();
  const entries = [...counts].toSorted(([, most], [, least]) => least - most).map((entry) => JSON.stringify(entry));
  let bytes = 1;
  const fits = entries.findIndex((entry) => (bytes += encoder.encode(entry).length + 1) > bytesMax);
  return encoder.encode(`[${(fits < 0 ? entries : entries.slice(0, fits)).join(",")}]`);
}

/** Returns what `encodeCounts` was given. Throws for other bytes. */
export function decodeCounts(bytes: Uint8Array): [key: string, requests: number][] {
  return JSON.parse(new TextDecoder().decode(bytes)) as [string, number][];
}
