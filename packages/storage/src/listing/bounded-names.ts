/** A bound on the names of one key that a region may list, so that a list without an end does not take all memory. */
import { AgaroseError } from "@agarose/core";
import type { ListedObject, Store } from "../buckets/store.ts";

/**
 * A key that is put every minute, with a `keep` of two months, has fewer copies. A region that lists more makes them
 * up, or was never collected.
 */
export const NAMES_MAX = 100_000;

/** The names that the store lists below a prefix of one key. Throws SOURCE_FAILED behind `NAMES_MAX` names. */
export async function* boundedNames(store: Store, prefix: string, signal: AbortSignal): AsyncGenerator<ListedObject> {
  let names = 0;
  for await (const listed of store.list(prefix, signal)) {
    if (++names > NAMES_MAX) throw tooManyNames(store, prefix, names);
    yield listed;
  }
}

/** The error of a region that lists `names` names or more below `prefix`. */
export function tooManyNames({ region }: Store, prefix: string, names: number): AgaroseError {
  const message =
    `region ${region.name} lists ${names} names or more below ${prefix}, and ${NAMES_MAX} are read at most: ` +
    `delete garbage with \`agarose gc\`, or look at them in ${region.endpoint}/${region.bucket}`;
  return new AgaroseError("SOURCE_FAILED", message, { region: region.name, prefix, names, limit: NAMES_MAX });
}
