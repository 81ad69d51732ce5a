/** Looks whether the chunks of an object are there, by length, without reading them. */
import { chunkBytes, chunkNameOf, chunkRegions, type Manifest } from "@agarose/core/format";
import { storeNamed } from "../buckets/region-names.ts";
import { runTasks, type Task } from "../regions/ask-regions.ts";
import type { RegionParts } from "../commit/write-context.ts";

/**
 * The chunks of `chunks` that their regions do not have in full, ascending. A region that does not answer counts as
 * having them; a region that is not configured as not having them.
 */
export async function findGoneChunks(
  manifest: Pick<Manifest, "key" | "upload" | "bytes" | "stripeBytes" | "k" | "m" | "placement" | "extra">,
  chunks: readonly number[],
  context: RegionParts,
): Promise<number[]> {
  const regions = chunkRegions(manifest);
  const expected = chunkBytes(manifest);
  if (manifest.bytes === 0) return [];
  const storeOf = (chunk: number) => storeNamed(context.stores, regions[chunk]!);
  const known = chunks.filter(storeOf);
  const tasks = known.map((chunk): Task<number | undefined> => {
    const store = storeOf(chunk)!;
    return { store, run: (signal) => store.head(chunkNameOf(manifest, chunk), signal) };
  });
  const outcomes = await runTasks(tasks, { enough: Math.min(manifest.k, tasks.length) }, context);
  const gone = known.filter((_, index) => !outcomes[index]!.error && outcomes[index]!.value !== expected);
  const unknown = chunks.filter((chunk) => !storeOf(chunk));
  return [...gone, ...unknown].toSorted((a, b) => a - b);
}
