/**
 * Which chunks a cache holds, as text in KV. Tens of thousands of versions share a few lists of chunks, so the text has
 * each list once: an isolate reads it every minute, and a schema that looks at each version takes ten times as long.
 */
import * as v from "valibot";

/** Chunk indices, ascending. */
export const chunksSchema = v.array(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(255)));
/** Many strings, checked at once. */
export const stringsSchema = v.custom<readonly string[]>(
  (value) => Array.isArray(value) && value.every((one) => typeof one === "string"),
  "must be strings",
);

/** The chunks that a PoP holds, by version. */
export type Held = ReadonlyMap<string, readonly number[]>;

/** Reads what `formatHeld` returns. */
export const heldSchema = v.pipe(
  v.array(v.object({ chunks: chunksSchema, versions: stringsSchema })),
  v.transform((groups): Held => {
    return new Map(groups.flatMap(({ chunks, versions }) => versions.map((version) => [version, chunks] as const)));
  }),
);

/** Returns the JSON value of `held`. */
export function formatHeld(held: Held): v.InferInput<typeof heldSchema> {
  return [...Map.groupBy(held, ([, chunks]) => chunks.join()).values()].map((group) => ({
    chunks: [...group[0]![1]],
    versions: group.map(([version]) => version),
  }));
}
