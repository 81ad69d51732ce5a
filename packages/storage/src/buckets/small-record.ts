/** Records and answers that are read whole, such as claims. Anything may come in their place, so each has a bound. */
import { AgaroseError, type FetchedResponse } from "@agarose/core";
import { readChecked } from "@agarose/core/sources";
import type { PutOptions, PutReceipt, Store } from "./store.ts";

/** Claims, entries of the repair queue and marks are a line of JSON. */
const RECORD_BYTES_MAX = 16 * 1024;
/** No report of a PoP is longer. */
export const POP_ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** Reads a record of at most `bytesMax` bytes. Rejects with SOURCE_FAILED where more comes. */
export function readRecord(response: FetchedResponse, name: string, bytesMax = RECORD_BYTES_MAX): Promise<Uint8Array> {
  return readChecked(response, (bytes) => {
    if (bytes <= bytesMax) return;
    const message = `${name} has ${bytes} bytes or more where at most ${bytesMax} are expected: something else is there`;
    throw new AgaroseError("SOURCE_FAILED", message, { name, bytes, max: bytesMax });
  });
}

/** A record as its region has it; undefined where it is gone. Rejects when the region does not say: SOURCE_FAILED. */
export async function recordIn(
  store: Store,
  name: string,
  what: string,
  signal?: AbortSignal,
  bytesMax?: number,
): Promise<{ readonly bytes: Buffer; readonly etag: string | undefined } | undefined> {
  const response = await store.get(name, signal && { signal });
  const { status, headers } = response;
  if (status === 200) {
    return { bytes: Buffer.from(await readRecord(response, name, bytesMax)), etag: headers.get("etag") ?? undefined };
  }
  await response.body?.cancel();
  if (status === 404) return undefined;
  const region = store.region.name;
  const message = `region ${region} answered ${status} for the ${what} ${name}: retry later`;
  throw new AgaroseError("SOURCE_FAILED", message, { region, status });
}

/** The text of a record; "" where it is gone. Rejects as `recordIn` does. */
export async function recordText(
  store: Store,
  name: string,
  what: string,
  signal: AbortSignal,
  bytesMax?: number,
): Promise<string> {
  return (await recordIn(store, name, what, signal, bytesMax))?.bytes.toString() ?? "";
}

/** `readRecord` as text. */
export async function readRecordText(response: FetchedResponse, name: string, bytesMax?: number): Promise<string> {
  return new TextDecoder().decode(await readRecord(response, name, bytesMax));
}

/** Stores a record, where a condition is given only if it holds. */
export function putRecord(
  store: Store,
  name: string,
  body: string | Uint8Array,
  options: Pick<PutOptions, "signal" | "ifMatch" | "ifNoneMatch" | "cacheControl">,
): Promise<PutReceipt> {
  const bytes = Buffer.from(body);
  return store.put(name, bytes, { bytes: bytes.length, contentType: "application/json", ...options });
}
