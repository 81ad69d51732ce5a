/** The shard hashes of a stored object, by signed requests to the regions of its leaf list. */
import { AgaroseError } from "@agarose/core";
import { checkPage, chunkName, LEAF_LIST, type Manifest } from "@agarose/core/format";
import { StripeHashes } from "@agarose/core/read";
import { currentNames, regionsOf } from "../buckets/region-names.ts";
import { readRecord } from "../buckets/small-record.ts";
import type { RegionParts } from "../commit/write-context.ts";
import { nodeSha256 } from "../objects/sha256.ts";
import { runTasks, type Task } from "../regions/ask-regions.ts";

/** A page comes from the first region, and from the others where that is late, fails, or has a wrong one. */
const FIRST_GOOD = { enough: 1, isGood: () => true };

/**
 * The hashes of `manifest`. They reject with NOT_ENOUGH_CHUNKS where no region has a sound copy of a page, and as the
 * caller aborts.
 */
export function hashesOf(manifest: Manifest, context: RegionParts): StripeHashes {
  return new StripeHashes(manifest, async (page, { chunkOffset, shardBytes }) => {
    const { key, upload, leaves = [] } = manifest;
    const name = chunkName(key, upload, LEAF_LIST);
    const range = `bytes=${chunkOffset}-${chunkOffset + shardBytes - 1}`;
    const regions = currentNames(leaves, regionsOf(context.stores));
    const stores = context.stores.filter(({ region }) => regions.includes(region.name));
    const tasks = stores.map((store): Task<Uint8Array> => ({
      store,
      run: async (signal) => {
        const response = await store.get(name, { range, signal });
        const bytes = await readRecord(response, name, shardBytes);
        if (response.status !== 206 || bytes.length !== shardBytes) {
          const { status } = response;
          const code = status === 404 ? "CHUNK_MISSING" : status === 206 ? "CHUNK_WRONG_LENGTH" : "SOURCE_FAILED";
          throw new AgaroseError(code, `region ${store.region.name} answered ${status} with ${bytes.length} bytes`);
        }
        await checkPage(manifest, page, bytes, nodeSha256);
        return bytes;
      },
    }));
    const outcomes = await runTasks(tasks, FIRST_GOOD, context);
    const found = outcomes.find(({ error }) => !error);
    if (found && !found.error) return found.value;
    const failures = outcomes.map(({ store, error }) => ({ region: store.region.name, code: error!.code }));
    throw new AgaroseError(
      "NOT_ENOUGH_CHUNKS",
      `0 of ${regions.length} regions have page ${page} of the leaf list of ${JSON.stringify(key)}, 1 is needed ` +
        `(${failures.map(({ region, code }) => `${region} ${code}`).join(", ")}): try again once more regions answer`,
      { key, page, needed: 1, received: 0, failures },
    );
  });
}
