/** A whole copy of an object in one bucket: what latencies are compared with. Readers never ask for it. */
import { encodeKey } from "@agarose/core/format";
import type { Store } from "../buckets/store.ts";

/** The S3 name of the whole copy of a key. */
export function copyName(key: string): string {
  return `${encodeKey(key)}.copy`;
}

/** Stores `content` as the whole copy of `key`. */
export async function putCopy(
  store: Store,
  key: string,
  content: Uint8Array,
  { contentType, signal }: { readonly contentType: string; readonly signal: AbortSignal },
): Promise<void> {
  await store.put(copyName(key), content, { bytes: content.length, contentType, signal });
}
