/**
 * The repair queue: an entry for every object that a put left incomplete, for `agarose repair`.
 */
import type { Store } from "../../store/store.ts";
import { askRegions } from "./ask-regions.ts";
import { repairName } from "./names.ts";
import { majorityOf, type WriteContext } from "./write-context.ts";

/** What an object lacks. */
export interface RepairEntry {
  readonly key: string;
  readonly generation: number;
  /** Chunks that no region took. */
  readonly missing: readonly number[];
  /** Regions without its newest manifest. */
  readonly regions: readonly string[];
}

/** Enters an object in every region that answers. The entry is a hint, so a failure is not reported. */
export async function enqueueRepair(entry: RepairEntry, context: WriteContext): Promise<void> {
  const body = Buffer.from(JSON.stringify(entry));
  const name = repairName(entry.key);
  const options = { bytes: body.length, contentType: "application/json" };
  const put = (store: Store, signal: AbortSignal): Promise<unknown> => store.put(name, body, { ...options, signal });
  await askRegions(context.stores, put, { enough: majorityOf(context.stores) }, context);
}

/** Removes the entry of a key, once the object is whole. */
export async function dequeueRepair(
  key: string,
  context: Pick<WriteContext, "stores" | "clock" | "signal" | "breaker">,
) {
  const remove = (store: Store): Promise<unknown> => store.remove([repairName(key)]);
  await askRegions(context.stores, remove, { enough: majorityOf(context.stores) }, context);
}
