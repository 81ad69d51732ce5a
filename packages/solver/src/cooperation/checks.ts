/** The checks of this room: they throw REQUEST_INVALID, so that a peer that sends garbage changes nothing. */
import { fieldReader, type FieldReader } from "../json-fields.ts";

const reader: FieldReader = fieldReader("REQUEST_INVALID", "cache events: ");

/** Readers of fields that throw REQUEST_INVALID, naming the field. */
export const { fail, asObject, asList, asNumber, asInteger } = reader;

const CHUNK_MAX = 2 ** 31 - 1;

/** Different chunk indices from 0 to 2^31 - 1 in ascending order. Throws REQUEST_INVALID. */
export function asChunks(input: unknown, field: string): readonly number[] {
  const chunks: number[] = [];
  for (const [i, chunk] of asList(input, field).entries()) {
    chunks.push(asInteger(chunk, `${field}[${i}]`, i === 0 ? 0 : chunks[i - 1]! + 1));
  }
  const last = chunks.at(-1) ?? 0;
  return last <= CHUNK_MAX ? chunks : reader.fail(field, `must be indices up to ${CHUNK_MAX}, got ${last}`);
}
