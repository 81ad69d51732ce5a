/** A PoP on Node with buckets that are 15 ms away. */
import { join } from "node:path";
import { startPopProcess, type PopProcess } from "@agarose/pop/test";
import { startBuckets, withClosers, type Buckets } from "./buckets.ts";

const BUCKET_MS = 15;

/** What to start. */
export interface NodePopOptions {
  /** Files to store below `bench/`. Each name begins with the length of its file. */
  readonly names: readonly string[];
  /** `MEMORY_BYTES` of the PoP. Default: its own. */
  readonly memoryBytes?: number;
}

/** A running PoP. */
export interface NodePop extends Buckets {
  readonly pop: PopProcess;
}

/** Starts buckets and PoP, and stores the files. */
export function startNodePop({ names, memoryBytes }: NodePopOptions): Promise<NodePop> {
  return withClosers(async (closers) => {
    const buckets = await startBuckets({ code: { k: 4, m: 2 }, delayMs: BUCKET_MS });
    closers.push(() => buckets.close());
    await buckets.put(names);
    const variables = {
      ...buckets.variables,
      POP: "bench",
      CACHE_BYTES: "100000000",
      ...(memoryBytes !== undefined && { MEMORY_BYTES: String(memoryBytes) }),
    };
    const folder = join(buckets.folder, "pop");
    const pop = await startPopProcess({ variables, folder, periodMs: 0 }, () => {});
    closers.push(() => pop.kill());
    return { ...buckets, pop };
  });
}
