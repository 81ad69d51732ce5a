/** Records and answers that are read whole, such as claims. Anything may come in their place, so each has a bound. */
import { AgaroseError, type FetchedResponse } from "@agarose/core";
import { readChecked } from "@agarose/core/sources";
import type { Store } from "./store.ts";

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

/** The text of a record; "" where it is gone. Rejects when its region does not say: SOURCE_FAILED. */
export async function recordText(
  store: Store,
  name: string,
  what: string,
  signal: AbortSignal,
  bytesMax?: number,
): Promise<string> {
  const response = await store.get(name, { signal });
  const { status } = response;
  if (status === 404) return "";
  if (status === 200) return readRecordText(response, name, bytesMax);
  const region = store.region.name;
  const message = `region ${region} answered ${status} for the ${what} ${name}: retry later`;
  throw new AgaroseError("SOURCE_FAILED", message, { region, status });
}

/** `readRecord` as text. */
export async function readRecordText(response: FetchedResponse, name: string, bytesMax?: number): Promise<string> {
  return new TextDecoder().decode(await readRecord(response, name, bytesMax));
}
