/**
 * Records and answers that are read whole, such as claims. Anything may come in their place, so each has a bound.
 */
import { AgaroseError, type FetchedResponse } from "@agarose/core";
import { readChecked } from "@agarose/core/sources";

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

/** `readRecord` as text. */
export async function readRecordText(response: FetchedResponse, name: string, bytesMax?: number): Promise<string> {
  return new TextDecoder().decode(await readRecord(response, name, bytesMax));
}
